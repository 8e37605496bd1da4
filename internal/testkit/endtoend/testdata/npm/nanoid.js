import { nanoid, customAlphabet } from 'nanoid'

export const run = () => [nanoid().length, /^[\w-]{10}$/.test(nanoid(10)), /^[ab]{30}$/.test(customAlphabet('ab', 30)()), nanoid() !== nanoid()]
