import { sign, verify, verifyWithFallback } from '@octokit/webhooks-methods'

export const run = async () => {
  const signature = await sign('secret', '{"action":"opened","title":"ä"}')
  return [signature, await verify('secret', '{"action":"opened","title":"ä"}', signature), await verify('secret', '{}', signature), await verifyWithFallback('new', '{"action":"opened","title":"ä"}', signature, ['secret'])]
}
