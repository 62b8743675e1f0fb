// The tests of rollout.js, each on an API of its own.

import { AppsV1Api, CoreV1Api } from '@kubernetes/client-node';
import { withTemplate } from 'pintle-server/vitest';
import { expect, vi } from 'vitest';
import { CONFIG, DATA, digest, start } from './rollout.js';

const namespace = 'default';

function deployment(name, config) {
  const labels = { app: name };
  return {
    metadata: { name, annotations: config && { [CONFIG]: config } },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web:1' }] } } },
  };
}

/** What each test begins with. */
const test = withTemplate('shop', async (workspace) => {
  const { core, apps } = await clients(workspace);
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'settings' }, data: { color: 'blue' } } });
  await apps.createNamespacedDeployment({ namespace, body: deployment('shop', 'settings') });
  await apps.createNamespacedDeployment({ namespace, body: deployment('other') });
});

async function clients(workspace) {
  const config = await workspace.kubeConfig();
  return { config, core: config.makeApiClient(CoreV1Api), apps: config.makeApiClient(AppsV1Api) };
}

/** The tests' clients, with the program running; `version(name)` is what it has written to a Deployment. */
async function running(workspace, onTestFinished) {
  const { config, core, apps } = await clients(workspace);
  const program = await start(config);
  onTestFinished(() => program.stop());
  const read = (name) => apps.readNamespacedDeployment({ name, namespace });
  const version = async (name) => (await read(name)).spec.template.metadata.annotations?.[DATA];
  const change = async (data, metadata = {}) => {
    const found = await core.readNamespacedConfigMap({ name: 'settings', namespace });
    await core.replaceNamespacedConfigMap({ name: 'settings', namespace, body: { ...found, data, metadata: { ...found.metadata, ...metadata } } });
  };
  const until = (name, data) => vi.waitFor(async () => expect(await version(name)).toBe(digest(data)), { timeout: 20_000, interval: 5 });
  await until('shop', { color: 'blue' });
  return { apps, read, version, change, until };
}

test('deployments get the version of their ConfigMap', async ({ workspace, onTestFinished }) => {
  const { version } = await running(workspace, onTestFinished);
  expect(await version('other')).toBe(undefined);
});

test('changed data restart them, which is a new generation', async ({ workspace, onTestFinished }) => {
  const { read, change, until } = await running(workspace, onTestFinished);
  const { generation } = (await read('shop')).metadata;
  await change({ color: 'green' });
  await until('shop', { color: 'green' });
  expect((await read('shop')).metadata.generation).toBe(generation + 1);
});

test('changed labels do not', async ({ workspace, onTestFinished }) => {
  const { read, change } = await running(workspace, onTestFinished);
  const { resourceVersion } = (await read('shop')).metadata;
  await change({ color: 'blue' }, { labels: { seen: 'yes' } });
  await workspace.settle();
  expect((await read('shop')).metadata.resourceVersion).toBe(resourceVersion);
});

test('watches that end are begun anew', async ({ workspace, onTestFinished }) => {
  const { change, until } = await running(workspace, onTestFinished);
  const fault = await workspace.fault({ match: { resources: ['configmaps'] }, when: { count: 3 }, effect: { watch: 'Expire' } });
  await change({ color: 'green' });
  await vi.waitFor(async () => expect(await fault.hits()).toBeGreaterThan(0), { timeout: 20_000 });
  await until('shop', { color: 'green' });
});

test('writes that are refused are repeated', async ({ workspace, onTestFinished }) => {
  const { change, until } = await running(workspace, onTestFinished);
  await workspace.fault({ match: { verbs: ['patch'] }, when: { count: 2 }, effect: { error: { code: 503 } } });
  await change({ color: 'green' });
  await until('shop', { color: 'green' });
});

test('at rest, nothing is written', async ({ workspace, onTestFinished }) => {
  const { change, until } = await running(workspace, onTestFinished);
  await change({ color: 'green' });
  await until('shop', { color: 'green' });
  await workspace.settle();
  const { agents } = await workspace.report();
  expect(agents.map(({ noOpWrites }) => noOpWrites ?? 0).reduce((sum, count) => sum + count)).toBe(0);
});
