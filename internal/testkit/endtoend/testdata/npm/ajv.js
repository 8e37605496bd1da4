import Ajv from 'ajv'

export const run = () => {
  const validate = new Ajv({ allErrors: true }).compile({
    type: 'object', required: ['id'], properties: { id: { type: 'string', pattern: '^[a-z]+$' }, n: { type: 'integer', minimum: 1 } }, additionalProperties: false,
  })
  return [validate({ id: 'a', n: 1 }), validate({ id: 'A', n: 0.5, x: 1 }), validate.errors]
}
