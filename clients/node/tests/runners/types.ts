// Uses every type of the package; runners.test.mjs compiles it with tsc --strict. A wrong use must be an error as well.

import { PintleError, ResponseError, plan, start, trial, type Server, type Workspace } from 'pintle-server';
import { afterEach as afterJest, beforeEach as beforeJest, test as jest, withTemplate as jestTemplate } from 'pintle-server/jest';
import setup from 'pintle-server/setup';
import { beforeEach as beforeVitest, test as vitest, withTemplate } from 'pintle-server/vitest';
import { CoreV1Api } from '@kubernetes/client-node';

export async function use(): Promise<void> {
  const server: Server = await start({ flags: ['--emulated-version=1.36'], run: 'types' });
  const template: Workspace = await server.template('crds', (workspace) => workspace.apply('config/crd'));
  const workspace = await template.fork(undefined, { ttl: '1m' });
  const api = (await workspace.kubeConfig()).makeApiClient(CoreV1Api);
  const { items } = await api.listNamespacedConfigMap({ namespace: 'default' });
  const fault = await workspace.fault({ recipe: 'lost-response' });
  const hits: number = await fault.hits();
  await workspace.clock.stop({ time: new Date(), seed: hits + items.length });
  await workspace.clock.advance('72h');
  await workspace.settle({ timeout: '5s' });
  const [applied] = await workspace.apply('a.yaml');
  const code = new ResponseError(404, applied.metadata.name).code;
  if (code < 0) throw new PintleError(`${server.url} ${workspace.kubeconfig()}`);
  const { summary, changes } = await plan('-f', 'a.yaml');
  const { cells } = await trial('trial.yaml');
  if (summary.delete + changes.length > cells.length) throw new PintleError(changes[0].fields[0].path);
  // @ts-expect-error: a time is a Date or a text
  await workspace.clock.set(5);
  server.stop();
  (await setup())();
}

const own = jestTemplate('crds', (workspace) => workspace.apply('config/crd'));
own.only('title', async ({ workspace }) => void workspace.name);
jest.skip.each([1, 2])('number %d', async ({ workspace }, number) => void workspace.settle({ quiet: `${number.toFixed()}ms` }));
withTemplate('crds', async (workspace) => workspace.apply('config/crd'))('title', async ({ workspace }) => void workspace.name);
beforeJest(async ({ workspace }) => void workspace.name);
afterJest(({ workspace }) => workspace.reset());
beforeVitest(({ workspace }) => workspace.reset());
vitest('title', async ({ workspace }) => void workspace.reset());
