// A provider with oidc-provider, over TLS. What it is comes in the variable PROVIDER, as JSON.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import Provider from 'oidc-provider';

const c = JSON.parse(process.env.PROVIDER);
const provider = new Provider(c.issuer, {
  clients: c.clients,
  jwks: { keys: c.keys },
  cookies: { keys: ['the provider of a test'] },
  claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'oid'], email: ['email', 'email_verified'], groups: ['groups'] },
  conformIdTokenClaims: c.userinfo, // true: claims are at userinfo alone
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256'] },
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true }, backchannelLogout: { enabled: true } },
  pkce: { required: () => true },
  ttl: { Interaction: 600, Session: 3600, Grant: 3600, IdToken: 600, AccessToken: 600 },
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({
      sub: id, preferred_username: id, name: `${id} of the provider`, email: `${id}@example.com`, email_verified: true, groups: c.groups, oid: `oid-${id}`,
    }),
  }),
});
provider.on('server_error', (ctx, err) => console.error(err));
provider.on('backchannel.error', (ctx, err) => console.error(err));
createServer({ cert: readFileSync(c.cert), key: readFileSync(c.key) }, provider.callback()).listen(c.port, '127.0.0.1');
