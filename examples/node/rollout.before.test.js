// The tests as they were, with a server that has to be written, and that knows of the API only what its author knew.

import { createServer } from 'node:http';
import { KubeConfig } from '@kubernetes/client-node';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CONFIG, DATA, digest, start } from './rollout.js';

/** Lists and watches of ConfigMaps, and lists and patches of Deployments. */
class Fake {
  constructor() {
    Object.assign(this, { version: 0, configMaps: new Map(), deployments: new Map(), watches: new Set(), refusals: 0, patches: 0 });
    this.server = createServer((request, response) => this.serve(request, response));
  }

  async listen() {
    await new Promise((done) => this.server.listen(0, '127.0.0.1', done));
    const config = new KubeConfig();
    const server = `http://127.0.0.1:${this.server.address().port}`;
    config.loadFromClusterAndUser({ name: 'fake', server, skipTLSVerify: true }, { name: 'fake' });
    return config;
  }

  async close() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  put(objects, type, object) {
    object.metadata = { namespace: 'default', ...object.metadata, resourceVersion: String(++this.version) };
    objects.set(object.metadata.name, object);
    if (objects !== this.configMaps) return;
    for (const watch of this.watches) watch.write(`${JSON.stringify({ type, object })}\n`);
  }

  async serve(request, response) {
    const url = new URL(request.url, 'http://fake');
    const send = (code, value) => response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const list = (objects) => send(200, { metadata: { resourceVersion: String(this.version) }, items: [...objects.values()] });
    const patched = url.pathname.match(/^\/apis\/apps\/v1\/namespaces\/default\/deployments\/(.+)$/);
    if (url.pathname === '/api/v1/configmaps' && url.searchParams.has('watch')) {
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      this.watches.add(response);
      response.on('close', () => this.watches.delete(response));
      // what has changed since the client's last event; without this, a client that continues its watch misses it
      const since = Number(url.searchParams.get('resourceVersion'));
      for (const object of this.configMaps.values()) {
        if (Number(object.metadata.resourceVersion) > since) response.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`);
      }
    } else if (url.pathname === '/api/v1/configmaps') {
      list(this.configMaps);
    } else if (url.pathname === '/apis/apps/v1/namespaces/default/deployments') {
      list(this.deployments);
    } else if (patched && request.method === 'PATCH') {
      let text = '';
      for await (const piece of request) text += piece;
      if (this.refusals-- > 0) return send(503, { kind: 'Status', code: 503 });
      this.patches += 1;
      const found = this.deployments.get(patched[1]);
      // a merge patch in general is more than this
      Object.assign((found.spec.template.metadata.annotations ??= {}), JSON.parse(text).spec.template.metadata.annotations);
      this.put(this.deployments, 'MODIFIED', found);
      send(200, found);
    } else {
      send(404, { kind: 'Status', code: 404, message: `not in the fake: ${request.method} ${request.url}` });
    }
  }
}

let fake;
let program;

beforeEach(async () => {
  fake = new Fake();
  fake.put(fake.configMaps, 'ADDED', { metadata: { name: 'settings' }, data: { color: 'blue' } });
  for (const [name, config] of [['shop', 'settings'], ['other']]) {
    fake.put(fake.deployments, 'ADDED', { metadata: { name, annotations: config && { [CONFIG]: config } }, spec: { template: { metadata: {} } } });
  }
  program = await start(await fake.listen());
  await until('shop', { color: 'blue' });
});

afterEach(async () => {
  await program.stop();
  await fake.close();
});

const version = (name) => fake.deployments.get(name).spec.template.metadata.annotations?.[DATA];
const change = (data, labels) => fake.put(fake.configMaps, 'MODIFIED', { metadata: { name: 'settings', labels }, data });
const until = (name, data) => vi.waitFor(() => expect(version(name)).toBe(digest(data)), { timeout: 20_000, interval: 5 });
// the watch of the informer is opened after its list
const watched = () => vi.waitFor(() => expect(fake.watches.size).toBe(1), { timeout: 20_000, interval: 5 });

test('deployments get the version of their ConfigMap', () => {
  expect(version('other')).toBe(undefined);
});

test('changed data restart them', async () => {
  await watched();
  change({ color: 'green' });
  await until('shop', { color: 'green' });
});

test('changed labels do not', async () => {
  await watched();
  change({ color: 'blue' }, { seen: 'yes' });
  // nothing says that the program has seen it
  await new Promise((done) => setTimeout(done, 200));
  expect(fake.patches).toBe(1);
});

test('watches that end are begun anew', async () => {
  await watched();
  for (const watch of fake.watches) watch.destroy();
  change({ color: 'green' });
  await until('shop', { color: 'green' });
});

test('writes that are refused are repeated', async () => {
  await watched();
  fake.refusals = 2;
  change({ color: 'green' });
  await until('shop', { color: 'green' });
});
