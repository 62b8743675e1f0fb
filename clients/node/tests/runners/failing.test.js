// A test that fails after the server has logged something; runners.test.mjs runs it.

import { test } from 'pintle-server/jest';

const webhook = {
  name: 'a.example.com',
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  failurePolicy: 'Ignore',
  // where nothing listens
  clientConfig: { url: 'https://127.0.0.1:1/' },
  rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
};

test('fails', async ({ workspace }) => {
  const metadata = { name: 'a' };
  await workspace.applyObject({ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration', metadata, webhooks: [webhook] });
  await workspace.request('POST', '/api/v1/namespaces/default/configmaps', { metadata });
  throw new Error('as it is meant to');
});
