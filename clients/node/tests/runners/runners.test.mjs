// The package with other runners than vitest: Jest and Bun.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';

const [platform] = readdirSync('node_modules/@oven');
const RUNNERS = {
  Jest: [process.execPath, '--experimental-vm-modules', createRequire(import.meta.url).resolve('jest/bin/jest')],
  Bun: [`node_modules/@oven/${platform}/bin/bun`, 'test'],
};

/** Runs test files. Returns the output, once the server has ended and its files are gone, and the numbers of the servers. */
async function run([program, ...options], ...files) {
  // paths of sockets are short
  const place = mkdtempSync('/tmp/pin-');
  const pids = mkdtempSync('/tmp/pin-');
  // with CI, where Bun is stricter
  const { PINTLE_RUN, NODE_TEST_CONTEXT, ...env } = { ...process.env, CI: 'true', XDG_RUNTIME_DIR: place, PIDS: pids };
  // a program that the environment sends elsewhere reaches the server all the same
  Object.assign(env, { HTTPS_PROXY: 'http://192.0.2.1:9', https_proxy: 'http://192.0.2.1:9', NODE_EXTRA_CA_CERTS: '/no/such/file', SSL_CERT_FILE: '/no/such/file' });
  const child = spawn(program, [...options, ...files], { env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += piece));
  const code = await new Promise((done) => child.once('close', done));
  for (let looks = 0; readdirSync(place).length; looks++) {
    assert.ok(looks < 2000, `${readdirSync(place)} are left: ${output}`);
    await new Promise((done) => setTimeout(done, 10));
  }
  const servers = readdirSync(pids);
  for (const directory of [place, pids]) rmSync(directory, { recursive: true });
  return { code, output, servers };
}

for (const [name, runner] of Object.entries(RUNNERS)) {
  test(`${name}: the workers share a server, and nothing is left`, async () => {
    const { code, output, servers } = await run(runner, './one.test.js', './two.test.js');
    assert.equal(code, 0, output);
    assert.match(output, /\b40 pass/, output);
    assert.equal(servers.length, 1, `${servers}: ${output}`);
  });

  test(`${name}: modifiers and rows have workspaces`, async () => {
    const { code, output } = await run(runner, './modifiers.test.js');
    assert.equal(code, 0, output);
    assert.match(output, /\b3 pass/, output);
    assert.match(output, /\b1 skip/, output);
    assert.match(output, /\b1 todo/, output);
  });

  test(`${name}: hooks have the workspace of their test`, async () => {
    const { code, output } = await run(runner, './hooks.test.js');
    assert.equal(code, 0, output);
    assert.match(output, /\b3 pass/, output);
  });

  test(`${name}: a test that fails shows its workspace and the log`, async () => {
    const { code, output } = await run(runner, './failing.test.js');
    assert.notEqual(code, 0, output);
    assert.match(output, /workspace of "fails": KUBECONFIG=\/\S+\.kubeconfig kubectl api-resources/, output);
    assert.match(output, /what differs from the beginning of the workspace:\n\s*created ConfigMap default\/a\n\s*created ValidatingWebhook/, output);
    assert.match(output, /log of the Pintle server:\n.*failed calling webhook, failing open/s, output);
  });
}

test('the types are those of the package', () => {
  const options = ['--strict', '--noEmit', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', 'types.ts'];
  const { status, stdout } = spawnSync('npx', ['tsc', ...options], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
