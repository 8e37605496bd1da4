import { Webhook } from 'svix'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', payload = '{"test": 2432232314}'

export const run = () => {
  const hook = new Webhook(secret), id = 'msg_p5jXN8AQM9LWM0D4loKWxJek', now = new Date()
  const fixed = hook.sign(id, new Date(1614265330000), payload)
  const headers = { 'svix-id': id, 'svix-timestamp': String(Math.floor(now.getTime() / 1000)), 'svix-signature': hook.sign(id, now, payload) }
  let wrong
  try {
    hook.verify(payload + ' ', headers)
  } catch (e) {
    wrong = [e.name, e.message]
  }
  return [fixed, hook.verify(payload, headers), wrong]
}
