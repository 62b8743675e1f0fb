// The package as users have it: installed from its archives, with the binary in the one of the platform.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { PintleError, plan, start, trial } from 'pintle-server';

const BOAT = { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name: 'argo' }, spec: { crew: 50 } };
const BOATS = '/apis/example.com/v1/namespaces/default/boats';
const SCHEMA = { type: 'object', properties: { spec: { type: 'object', properties: { crew: { type: 'integer' } } } } };
const CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: SCHEMA } }],
  },
};

let place;
let runs = 0;

beforeEach(() => {
  // paths of sockets are short
  place = mkdtempSync('/tmp/pin-');
  process.env.XDG_RUNTIME_DIR = place;
});

afterEach(() => rmSync(place, { recursive: true, force: true }));

const own = (options = {}) => start({ run: `test-${runs++}`, ...options });

/** Waits until processes have ended, and all files are gone. */
async function gone(...pids) {
  const runs = (pid) => {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'utf8').split(')').at(-1).trim()[0] !== 'Z';
    } catch {
      return false;
    }
  };
  for (let looks = 0; looks < 2000; looks++) {
    if (!readdirSync(place).length && !pids.some(runs)) return;
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.fail(`${pids.filter(runs)} run, ${readdirSync(place)} are left`);
}

test('workspaces are apart, and can be forked and reset', async () => {
  const server = await own();
  const [one, two] = await Promise.all([server.workspace(), server.workspace()]);
  await one.applyObject(CRD);
  await one.applyObject(BOAT);
  assert.deepEqual((await one.request('GET', `${BOATS}/argo`)).spec, { crew: 50 });
  await assert.rejects(two.applyObject(BOAT), /no matches for kind "Boat"/);
  const fork = await one.fork();
  await fork.request('DELETE', `${BOATS}/argo`);
  assert.deepEqual((await fork.request('GET', BOATS)).items, []);
  await fork.reset();
  assert.equal((await fork.request('GET', BOATS)).items.length, 1);
  await fork.delete();
  server.stop();
  await gone(server.pid);
});

test('a source is loaded by a flag', async () => {
  const source = mkdtempSync('/tmp/pin-source-');
  const uid = '3f6d1c1a-9d6a-4d0e-8f3e-0123456789ab';
  writeFileSync(join(source, 'a.yaml'), `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, uid: ${uid}}}`);
  const server = await own({ flags: [`--from=${source}`] });
  const workspace = await server.workspace('shop', { from: { workspace: 'default' } });
  assert.equal((await workspace.request('GET', '/api/v1/namespaces/shop/configmaps/a')).metadata.uid, uid);
  server.stop();
  await gone(server.pid);
  rmSync(source, { recursive: true });
});

test('a workspace that has ended is not the next one of its name', async () => {
  const server = await own();
  const ended = await server.workspace('again', { ttl: '1h' });
  await ended.delete();
  const later = await server.workspace('again');
  await assert.rejects(ended.applyObject(CRD), /another one has its name/);
  await assert.rejects(ended.patch({ spec: { template: true } }), /metadata.uid: Invalid value/);
  await ended.delete();
  await later.applyObject(CRD);
  server.stop();
  await gone(server.pid);
});

test('manifests are applied with their definitions first, to a template that is built once', async () => {
  const server = await own();
  const files = mkdtempSync('/tmp/pin-');
  writeFileSync(join(files, 'a-boat.json'), JSON.stringify(BOAT));
  writeFileSync(join(files, 'z-crd.json'), JSON.stringify(CRD));
  let built = 0;
  const spec = async ({ name }) => (await server.request('GET', `/apis/workspaces.pintle.dev/v1alpha1/workspaces/${name}`)).spec;
  const build = async (workspace) => {
    built += 1;
    // if this process died, the name of the template would be free again
    assert.equal((await spec(workspace)).ttl, '10s');
    const applied = await workspace.apply(files);
    assert.deepEqual(applied.map(({ kind }) => kind), ['CustomResourceDefinition', 'Boat']);
  };
  const forks = await Promise.all([1, 2, 3].map(async () => (await server.template('boats', build)).fork()));
  for (const fork of forks) await fork.request('GET', `${BOATS}/argo`);
  assert.equal(built, 1);
  const { template, ttl } = await spec(await server.template('boats', build));
  assert.deepEqual([template, ttl], [true, undefined]);
  await assert.rejects(server.template('broken', () => { throw new Error('no'); }), /^Error: no$/);
  assert.ok(existsSync(forks[0].kubeconfig()));
  rmSync(files, { recursive: true });
  server.stop();
  await gone(server.pid);
});

test('two files that give their templates one name get their own', async () => {
  const server = await own();
  const files = mkdtempSync('/tmp/pin-');
  const forks = {};
  for (const name of ['one', 'two']) {
    const metadata = JSON.stringify({ metadata: { name } });
    writeFileSync(
      join(files, `${name}.mjs`),
      `export const template = (server) => server.template('crds', (workspace) => workspace.request('POST', '/api/v1/namespaces', ${metadata}));`,
    );
    const { template } = await import(join(files, `${name}.mjs`));
    forks[name] = await (await template(server)).fork();
  }
  for (const [name, other] of [['one', 'two'], ['two', 'one']]) {
    await forks[name].request('GET', `/api/v1/namespaces/${name}`);
    await assert.rejects(forks[name].request('GET', `/api/v1/namespaces/${other}`), { code: 404 });
  }
  rmSync(files, { recursive: true });
  server.stop();
  await gone(server.pid);
});

test('manifests that cannot be read are named', async () => {
  const server = await own();
  const workspace = await server.workspace();
  const files = mkdtempSync('/tmp/pin-');
  await assert.rejects(workspace.apply(files), new PintleError(`${files} has no file that ends with .yaml, .yml or .json`));
  writeFileSync(join(files, 'broken.json'), '{"a": ');
  await assert.rejects(workspace.apply(files), (error) => error instanceof PintleError && error.message.startsWith(`${join(files, 'broken.json')}: `));
  const { contexts } = workspace.kubeconfigContent();
  assert.equal(contexts[0].context.namespace, 'default');
  rmSync(files, { recursive: true });
  server.stop();
  await gone(server.pid);
});

test('a long path of temporary files, and a binary that is another program', async () => {
  const { TMPDIR, PINTLE_BINARY } = process.env;
  const long = join(place, 'x'.repeat(100));
  mkdirSync(long);
  Object.assign(process.env, { TMPDIR: long, XDG_RUNTIME_DIR: long });
  try {
    const server = await own();
    assert.ok(server.socket.startsWith('/tmp/pintle-'), server.socket);
    server.stop();
    rmSync(long, { recursive: true });
    Object.assign(process.env, { XDG_RUNTIME_DIR: place, PINTLE_BINARY: '/bin/true' });
    await assert.rejects(own(), /^Error: \/bin\/true ends without starting a server/);
    await gone();
  } finally {
    for (const [name, value] of Object.entries({ TMPDIR, PINTLE_BINARY })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
});

test('processes share a server, which ends with the last of them', async () => {
  const code = `import { start } from 'pintle-server'; console.log((await start({ run: 'shared' })).pid); setInterval(() => {}, 1000);`;
  const processes = Array.from({ length: 4 }, () => spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] }));
  const pids = await Promise.all(processes.map((child) => new Promise((done) => child.stdout.once('data', (line) => done(Number(line))))));
  assert.equal(new Set(pids).size, 1, pids);
  for (const child of processes) {
    child.kill('SIGKILL');
    await new Promise((done) => child.once('exit', done));
  }
  await gone(pids[0]);
});

const SUITE = `
import { test } from 'node:test';
import { start } from 'pintle-server';

const maps = '/api/v1/namespaces/default/configmaps';
const create = (workspace, name) => workspace.request('POST', maps, { metadata: { name } });
for (let number = 0; number < 50; number++) {
  test(String(number), async () => {
    const template = await (await start()).template('built', (workspace) => create(workspace, 'built'));
    const workspace = await template.fork();
    // fails if another test has done so
    await create(workspace, 'own');
    await workspace.delete();
  });
}
`;

test('two hundred tests in processes beside each other leave nothing', async () => {
  // below this file, so that the package is found
  const suite = mkdtempSync(join(import.meta.dirname, 'suite-'));
  const files = [1, 2, 3, 4].map((number) => join(suite, `${number}.mjs`));
  for (const file of files) writeFileSync(file, SUITE);
  // without the variable, a run is not taken for a part of this one
  const { NODE_TEST_CONTEXT, ...env } = { ...process.env, PINTLE_RUN: 'many' };
  const child = spawn(process.execPath, ['--test', '--test-reporter=tap', '--test-concurrency=4', ...files], { env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += piece));
  await new Promise((done) => child.once('close', done));
  rmSync(suite, { recursive: true });
  assert.match(output, /^# pass 200$/m);
  await gone();
});

test('other flags are another server', async () => {
  const run = `flags-${process.pid}`;
  const [one, same, other] = await Promise.all([[], [], ['--emulated-version=1.36']].map((flags) => start({ run, flags })));
  assert.equal(one, same);
  assert.notEqual(one.pid, other.pid);
  assert.equal((await other.request('GET', '/version')).emulationMinor, '36');
  for (const server of [one, other]) server.stop();
  await gone(one.pid, other.pid);
});

// A program that says that it is ready, as another version.
const OLDER = `#!${process.execPath}
const { createServer } = require('node:net');
const { rmSync } = require('node:fs');
const path = process.argv.find((word) => word.startsWith('--exit-with-users=')).split('=')[1];
const line = { version: '0.0.1', url: 'https://127.0.0.1:1', credentials: {} };
const server = createServer((user) => {
  user.write(JSON.stringify(line) + '\\n');
  user.on('error', () => {});
  user.on('close', () => {
    server.close();
    rmSync(path.replace(/sock$/, 'log'));
  });
});
server.listen(path, () => console.log('ready'));
`;

test('programs that do not fit are one line', async () => {
  const binary = process.env.PINTLE_BINARY;
  const { arch } = process;
  const { version } = JSON.parse(readFileSync('node_modules/pintle-server/package.json', 'utf8'));
  const files = mkdtempSync('/tmp/pin-');
  process.env.PINTLE_BINARY = join(files, 'older');
  writeFileSync(process.env.PINTLE_BINARY, OLDER, { mode: 0o755 });
  await assert.rejects(own(), new PintleError(`${files}/older has version 0.0.1, and pintle-server is ${version}: install pintle-server@0.0.1, or another binary`));
  delete process.env.PINTLE_BINARY;
  Object.defineProperty(process, 'arch', { value: 'vax' });
  const missing = `npm install pintle-server-${process.platform}-vax@${version}, or name a binary of that version in PINTLE_BINARY`;
  await assert.rejects(own(), new PintleError(`there is no binary of pintle-server for ${process.platform}-vax: ${missing}`));
  Object.defineProperty(process, 'arch', { value: arch });
  if (binary) process.env.PINTLE_BINARY = binary;
  rmSync(files, { recursive: true });
});

test('what is wrong is one line', async () => {
  await assert.rejects(own({ flags: ['--no-such-flag'] }), new PintleError("the server does not start: unexpected argument '--no-such-flag' found"));
  const binary = process.env.PINTLE_BINARY;
  process.env.PINTLE_BINARY = '/no/such/pintle';
  await assert.rejects(own(), /^Error: PINTLE_BINARY names \/no\/such\/pintle, which is no program: correct or unset it$/);
  if (binary) process.env.PINTLE_BINARY = binary;
  else delete process.env.PINTLE_BINARY;
});

test('proxies are not used', async () => {
  for (const name of ['HTTPS_PROXY', 'https_proxy']) process.env[name] = 'http://192.0.2.1:9';
  const server = await own();
  assert.ok((await server.request('GET', '/api/v1/namespaces')).items.length);
  assert.ok(process.env.NO_PROXY.includes('127.0.0.1'));
  server.stop();
  await gone(server.pid);
});

test('faults end with what they are made of, and a workspace settles', async () => {
  const server = await own();
  const workspace = await server.workspace();
  const maps = '/api/v1/namespaces/default/configmaps';
  const write = () => workspace.request('POST', maps, { metadata: { name: 'a' } });
  const fault = await workspace.fault({ match: { verbs: ['create'] }, effect: { error: { code: 503 } } });
  await assert.rejects(write(), (error) => error.code === 503);
  while ((await fault.hits()) !== 1) await new Promise((done) => setTimeout(done, 10));
  await fault.delete();
  await write();
  await workspace.settle();
  await assert.rejects(workspace.settle({ quiet: '300ms', timeout: '100ms' }), /^Error: not settled: /);
  server.stop();
  await gone(server.pid);
});

test('a clock stops and advances, and a report says what was done', async () => {
  const server = await own();
  const workspace = await server.workspace();
  const maps = '/api/v1/namespaces/default/configmaps';
  const { clock } = workspace;
  await clock.stop({ time: new Date('2090-01-01T00:00:00Z'), seed: 7 });
  await clock.advance('1h30m');
  await clock.advance(1500);
  const created = await workspace.request('POST', maps, { metadata: { name: 'a' } });
  assert.equal(created.metadata.creationTimestamp, '2090-01-01T01:30:01Z');
  await clock.set('2091-01-01T00:00:00Z');
  await assert.rejects(clock.set('2090-01-01T00:00:00Z'), /never goes back/);
  await clock.resume();
  await clock.delete();
  const later = await workspace.request('POST', maps, { metadata: { name: 'b' } });
  assert.ok(later.metadata.creationTimestamp < '2090', later.metadata.creationTimestamp);
  assert.equal((await workspace.report()).agents[0].userAgent, 'pintle-server');
  server.stop();
  await gone(server.pid);
});

test('plans and trials are objects', async () => {
  const file = join(place, 'map.yaml');
  writeFileSync(file, '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}');
  const planned = await plan('--from', file, '--delete', 'configmap/a');
  assert.deepEqual([planned.summary.delete, planned.changes[0].name], [1, 'a']);
  const tried = await trial('--start', 'kubectl get configmaps -w', '--steps', file, '--quiet', '1s', '--cell', '1:down');
  assert.deepEqual(tried.cells, [{ cell: '1:down', verdict: 'same' }]);
  await assert.rejects(plan('--from', file, '--delete', 'configmap/b'), new PintleError('there is no object "configmap/b" in the source'));
});
