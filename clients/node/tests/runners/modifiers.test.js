// Tests with the modifiers of the runner; runners.test.mjs counts them.

import { test } from 'pintle-server/jest';

test.each([
  ['a', 1],
  ['b', 2],
])('rows: %s %d', async ({ workspace }, name, number) => {
  const { data } = await workspace.request('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name }, data: { number: String(number) } });
  expect(data).toEqual({ number: String(number) });
});

test.skip('skipped', async () => {
  throw new Error('not skipped');
});

test.failing('fails as expected', async ({ workspace }) => {
  await workspace.request('GET', '/api/v1/namespaces/default/configmaps/absent');
});

test.todo('later');
