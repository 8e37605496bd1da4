import Stripe from 'stripe'

const payload = JSON.stringify({ id: 'evt_1', object: 'event', type: 'payment_intent.succeeded', data: { object: { id: 'pi_1' } } })

export const run = async () => {
  const stripe = new Stripe('sk_test_1', { httpClient: Stripe.createFetchHttpClient(() => {}) })
  const header = await stripe.webhooks.generateTestHeaderStringAsync({ payload, secret: 'whsec_test', timestamp: 4102444800 })
  const event = await stripe.webhooks.constructEventAsync(payload, header, 'whsec_test', undefined, undefined, 4102444800000)
  const wrong = await stripe.webhooks.constructEventAsync(payload + ' ', header, 'whsec_test').catch((e) => e.type)
  return [header, event, wrong]
}
