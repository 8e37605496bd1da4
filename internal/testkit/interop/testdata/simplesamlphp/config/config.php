<?php
$config = [
 'baseurlpath' => getenv('SSP_URL'), 'certdir' => __DIR__.'/../cert/', 'loggingdir' => __DIR__.'/../log/', 'datadir' => __DIR__.'/../data/', 'tempdir' => __DIR__.'/../data/tmp',
 'technicalcontact_email' => 'na@example.org', 'secretsalt' => 'interopinteropinterop', 'auth.adminpassword' => 'interop', 'timezone' => 'UTC',
 'logging.level' => SimpleSAML\Logger::DEBUG, 'logging.handler' => 'errorlog', 'enable.saml20-idp' => true, 'module.enable' => ['exampleauth' => true, 'core' => true, 'saml' => true],
 'session.cookie.name' => 'SSP', 'session.cookie.secure' => true, 'session.cookie.samesite' => 'None', 'session.phpsession.cookiename' => 'SSPPHP', 'session.phpsession.savepath' => __DIR__.'/../data',
 'session.phpsession.httponly' => true, 'session.cookie.path' => '/', 'store.type' => 'phpsession', 'language.default' => 'en', 'metadata.sources' => [['type' => 'flatfile', 'directory' => __DIR__.'/../metadata']],
 'trusted.url.domains' => null, 'production' => true, 'showerrors' => true, 'errorreporting' => false,
];
