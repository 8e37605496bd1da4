import { v4, v5, v7, validate, version, parse, stringify } from 'uuid'

export const run = () => [
  version(v4()), version(v7()), v5('hello.example.com', v5.DNS), v5('http://example.com/hello', v5.URL), validate(v7()), stringify(parse('6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b')), v7() < v7(),
]
