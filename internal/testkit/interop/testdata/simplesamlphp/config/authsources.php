<?php
$config = ['admin' => ['core:AdminPassword'], 'people' => ['exampleauth:UserPass', 'jo:secret' => ['uid' => ['jo'], 'mail' => ['jo@example.com'], 'cn' => ['Jo Doe'], 'groups' => ['dev', 'ops']]]];
