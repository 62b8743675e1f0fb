// A server that the processes of a test run share, and that ends with the last of them.
//
// A Unix socket stands for the server. A connection to it makes this process a user; the kernel closes it however the process ends.
// The server sends a line of JSON when it is ready. Without a server there, this process starts one, which ends at once if another
// process was faster; see `pintle serve --help`.

import { execFile, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { readdir, readFile, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PintleError, find, version } from './binary.js';

export { PintleError } from './binary.js';
export { plan, trial } from './trials.js';

const TESTING_VERSION = 'testing.pintle.dev/v1alpha1';
const TESTING = `/apis/${TESTING_VERSION}`;
const CLOCK = `${TESTING}/clocks/clock`;
// the units of durations in milliseconds
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const WORKSPACES = '/apis/workspaces.pintle.dev/v1alpha1/workspaces';
const FLAGS = ['--storage=memory', '--workspaces', '--testing', '--secure-port=0', '--bind-address=127.0.0.1', '-o=json'];
const START_MILLISECONDS = 60_000;
// A program that ends without a word this often, for this long, is no server; another process that starts one ends ours once or twice.
const SILENT_ENDS = 20;
const SILENT_MILLISECONDS = 3_000;
// macOS has the shortest paths of sockets
const SOCKET_BYTES_MAX = 103;
const BUILD_MILLISECONDS = 300_000;
// for the changes of a workspace
const DIFF_MILLISECONDS = 10_000;
const DIFF_BYTES = 16 << 20;
const DIFF_LINES = 50;
// how long the key of a template stays taken after its builder has died
const LEASE_SECONDS = 10;
// what others need is applied first
const FIRST = ['Namespace', 'CustomResourceDefinition'];
const LOOPBACK = '127.0.0.1';

/** An error of the API. */
export class ResponseError extends PintleError {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const started = new Map();

/**
 * The server of this test run with these flags, which is started unless it runs. `run` names the test run; the workers of vitest and
 * jest have the same one from the set-up of the run.
 */
export function start({ flags = [], run = process.env.PINTLE_RUN } = {}) {
  const key = JSON.stringify([run, flags]);
  const known = started.get(key);
  if (known && !known.isStopped) return known.promise;
  const entry = { isStopped: false };
  entry.promise = Server.join(flags, run ?? randomUUID(), entry).catch((error) => {
    started.delete(key);
    throw error;
  });
  started.set(key, entry);
  return entry.promise;
}

/** The directory of the sockets, which only this user can read: the first one that is writable, with paths that a socket can have. */
function directory() {
  const own = (parent) => join(parent, `pintle-${process.getuid()}`);
  const fits = (parent) => {
    try {
      accessSync(parent, constants.W_OK);
      return Buffer.byteLength(join(own(parent), `${'0'.repeat(16)}.sock`)) <= SOCKET_BYTES_MAX;
    } catch {
      return false;
    }
  };
  return own([process.env.XDG_RUNTIME_DIR, tmpdir()].find((parent) => parent && fits(parent)) ?? '/tmp');
}

/** The file that calls this package, by the stack; empty if none is found. */
export function caller() {
  const own = fileURLToPath(new URL('.', import.meta.url));
  const files = [...(new Error().stack ?? '').matchAll(/(\/[^\s()]*):\d+:\d+/g)].map(([, file]) => file.replace(/^\/\/(?=\/)/, ''));
  return files.find((file) => !file.startsWith(own)) ?? '';
}

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

export class Server {
  /** Becomes a user of the server, and starts one if there is none. */
  static async join(flags, run, entry) {
    const server = new Server();
    server.entry = entry;
    server.program = find();
    const { mtimeMs, size } = statSync(server.program);
    const name = createHash('sha256').update([run, server.program, mtimeMs, size, 'node', ...flags].join('\0')).digest('hex').slice(0, 16);
    server.socket = join(directory(), `${name}.sock`);
    server.data = join(directory(), `${name}.data`);
    server.flags = [...FLAGS, `--exit-with-users=${server.socket}`, `--data-dir=${server.data}`, ...flags];
    server.templates = new Map();
    const began = Date.now();
    for (let ends = 0; !(await server.connect()); ends++) {
      const took = Date.now() - began;
      if (ends > SILENT_ENDS && took > SILENT_MILLISECONDS) {
        server.forgetLog();
        throw new PintleError(`${server.program} ends without starting a server: run ${server.program} serve to see why, and correct PINTLE_BINARY if it is set`);
      }
      if (took > START_MILLISECONDS) throw new PintleError(`no server has started within ${START_MILLISECONDS / 1000} s: run ${server.program} serve to see why`);
      await server.spawn();
    }
    if (server.version !== version && version !== '0.0.0') {
      server.stop();
      throw new PintleError(`${server.program} has version ${server.version}, and pintle-server is ${version}: install pintle-server@${server.version}, or another binary`);
    }
    exceptFromProxies();
    return server;
  }

  /** Connects, and reads the first line. False if there is no server, or if it is about to end. */
  async connect() {
    const connection = createConnection(this.socket);
    const line = await new Promise((done) => {
      let text = '';
      connection.setEncoding('utf8');
      connection.on('data', (piece) => {
        text += piece;
        if (text.includes('\n')) done(text);
      });
      connection.on('error', () => done(''));
      connection.on('end', () => done(''));
    });
    if (!line) {
      connection.destroy();
      return false;
    }
    // tests end although the connection is open
    connection.unref();
    this.connection = connection;
    const { credentials: { certificateAuthority: ca, certificate: cert, key }, url, version, pid, log } = JSON.parse(line);
    Object.assign(this, { url, version, pid, log, credentials: { ca, cert, key } });
    this.agent = new Agent({ keepAlive: true, ca, cert, key });
    return true;
  }

  logFile() {
    return this.socket.replace(/sock$/, 'log');
  }

  /** Removes the log of a server that has not started, and the directory if no other server is in it. */
  forgetLog() {
    rmSync(this.logFile(), { force: true });
    try {
      rmdirSync(directory());
    } catch {
      // in use, or gone
    }
  }

  /** Starts a server, and returns when it accepts connections, or another one does. */
  async spawn() {
    const logFile = this.logFile();
    let log;
    try {
      mkdirSync(directory(), { mode: 0o700, recursive: true });
      // the server removes it
      log = openSync(logFile, 'a', 0o600);
    } catch (error) {
      // the directory of a server that has just ended
      if (error.code === 'ENOENT') return;
      throw error;
    }
    const { size } = statSync(logFile);
    // a group of its own: Ctrl-C is for the tests
    const child = spawn(this.program, ['serve', ...this.flags], { detached: true, stdio: ['ignore', 'pipe', log] });
    closeSync(log);
    const code = await new Promise((done, failed) => {
      child.once('error', (error) => failed(new PintleError(`cannot run ${this.program}: ${error.message}`)));
      child.once('close', (code) => done(code ?? 1));
      child.stdout.once('data', () => done(null));
    });
    child.stdout.destroy();
    child.unref();
    if (code) {
      const lines = readFileSync(logFile).subarray(size).toString().trim().split('\n');
      this.forgetLog();
      // after an error of the command line, there is advice
      const why = lines.find((line) => /^(error|pintle): /.test(line))?.replace(/^\w+: /, '') ?? lines.at(-1);
      throw new PintleError(`the server does not start: ${why || code}`);
    }
  }

  /** The decoded response to a request. Errors of the API are exceptions with its message. No proxy is used. */
  request(method, path, body, contentType = 'application/json') {
    const data = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const headers = { accept: 'application/json', 'user-agent': 'pintle-server' };
    if (data !== undefined) Object.assign(headers, { 'content-type': contentType, 'content-length': Buffer.byteLength(data) });
    return new Promise((done, failed) => {
      const sent = request(this.url + path, { method, headers, agent: this.agent }, (response) => {
        const pieces = [];
        response.on('data', (piece) => pieces.push(piece));
        response.on('error', failed);
        response.on('end', () => {
          const text = Buffer.concat(pieces).toString();
          const value = /^[[{]/.test(text) ? JSON.parse(text) : text;
          if (response.statusCode >= 400) failed(new ResponseError(response.statusCode, value.message ?? text.trim()));
          else done(value);
        });
      });
      sent.on('error', failed);
      sent.end(data);
    });
  }

  /** A new workspace, with the fields of its specification; it is empty unless they say otherwise. */
  async workspace(name = `w-${randomUUID().slice(0, 13)}`, spec = {}) {
    // it can be used when the response comes
    const kubeconfig = await this.request('POST', `/clusters/${name}`, spec);
    // of a workspace that ends, the URL has the uid, since another one may get the name
    const place = kubeconfig.clusters[0].cluster.server.split('/').pop();
    return new Workspace(this, name, place.split('.')[1]);
  }

  /**
   * The template of a key. The first process that asks for it calls `build` with the new workspace; the others wait. The file that
   * defines the template is part of its key: two files that chose one name would otherwise get each other's objects.
   */
  template(key, build, place = caller()) {
    const whole = `${place}\0${key}`;
    if (!this.templates.has(whole)) {
      const building = this.buildTemplate(`t-${createHash('sha256').update(whole).digest('hex').slice(0, 16)}`, key, build);
      building.catch(() => this.templates.delete(whole));
      this.templates.set(whole, building);
    }
    return this.templates.get(whole);
  }

  async buildTemplate(name, key, build) {
    const until = Date.now() + BUILD_MILLISECONDS;
    while (Date.now() < until) {
      const began = Date.now();
      let template;
      try {
        template = await this.workspace(name, { ttl: `${LEASE_SECONDS}s` });
      } catch (error) {
        if (error.code !== 409) throw error;
        if (await this.built(name, until)) return new Workspace(this, name);
        continue;
      }
      const extend = () => template.patch({ spec: { ttl: `${Math.floor((Date.now() - began) / 1000) + LEASE_SECONDS}s` } });
      // the end shows whether the template is still there
      const lease = setInterval(() => extend().catch(() => {}), (LEASE_SECONDS * 1000) / 3);
      try {
        await build(template);
        clearInterval(lease);
        await template.patch({ spec: { template: true, ttl: null } });
        return template;
      } catch (error) {
        clearInterval(lease);
        // another process may build it
        await template.delete();
        throw error;
      }
    }
    throw new PintleError(`the template ${JSON.stringify(key)} has not been built within ${BUILD_MILLISECONDS / 1000} s`);
  }

  /** Whether a template that another process builds is there in the end. */
  async built(name, until) {
    while (Date.now() < until) {
      const found = await this.request('GET', `${WORKSPACES}/${name}`).catch((error) => {
        if (error.code !== 404) throw error;
      });
      if (!found) return false;
      if (found.spec.template) return true;
      await sleep(5);
    }
    return false;
  }

  /** The path of a kubeconfig for the API outside of workspaces. */
  kubeconfig() {
    return join(this.data, 'admin.kubeconfig');
  }

  /** What the server has logged. */
  logged() {
    return this.logSince(0);
  }

  /** The length of the log until now, for `logSince`. */
  logSize() {
    return this.log && existsSync(this.log) ? statSync(this.log).size : 0;
  }

  /** What the server has logged since then. */
  logSince(size) {
    return this.log && existsSync(this.log) ? readFileSync(this.log).subarray(size).toString() : '';
  }

  /** Ends the use by this process. The server ends with its last user. */
  stop() {
    this.entry.isStopped = true;
    this.agent.destroy();
    this.connection.destroy();
  }
}

export class Workspace {
  constructor(server, name, uid) {
    this.server = server;
    this.name = name;
    this.uid = uid;
    this.prefix = `/clusters/${uid ? `${name}.${uid}` : name}`;
    this.url = server.url + this.prefix;
    this.plurals = new Map();
    this.clock = new Clock(this);
  }

  /** A request to the API of the workspace. */
  request(method, path, body, contentType) {
    return this.server.request(method, this.prefix + path, body, contentType);
  }

  /** A merge patch of the object that stands for the workspace. */
  patch(patch) {
    const metadata = this.uid && { metadata: { uid: this.uid } };
    return this.server.request('PATCH', `${WORKSPACES}/${this.name}`, { ...metadata, ...patch }, 'application/merge-patch+json');
  }

  /** A workspace that begins with everything in this one. */
  fork(name, spec = {}) {
    return this.server.workspace(name, { from: { workspace: this.name }, ...spec });
  }

  /** Puts the workspace back to what it began as. Its watches end. */
  async reset() {
    // it is done when the response comes
    await this.patch({ spec: { reset: randomUUID() } });
  }

  /** Deletes the workspace, with all that is in it. */
  async delete() {
    const options = this.uid && { preconditions: { uid: this.uid } };
    await this.server.request('DELETE', `${WORKSPACES}/${this.name}`, options).catch((error) => {
      // it is gone, and another one may have its name
      if (error.code !== 404 && error.code !== 409) throw error;
    });
    if (this.file) rmSync(this.file, { force: true });
  }

  /**
   * Makes requests or events of this workspace fail: `{ recipe }`, or `match`, `when` and `effect` of a `Fault`. Returns the fault, whose
   * `delete()` ends its effect; see https://github.com/pintle/pintle/blob/main/docs/src/reference/testing-api.md.
   */
  async fault({ name = `fault-${randomUUID().slice(0, 13)}`, ...spec }) {
    const path = `${TESTING}/faults`;
    await this.request('POST', path, { apiVersion: TESTING_VERSION, kind: 'Fault', metadata: { name }, spec });
    return {
      name,
      hits: async () => (await this.request('GET', `${path}/${name}`)).status?.hits ?? 0,
      delete: () => this.request('DELETE', `${path}/${name}`),
    };
  }

  /** Returns when every watch has received everything and nothing is written any more; otherwise it throws, with who is behind. */
  async settle({ quiet = '100ms', timeout = '20s', ...spec } = {}) {
    const settle = { apiVersion: TESTING_VERSION, kind: 'Settle', metadata: { name: 'now' }, spec: { quiet, timeout, ...spec } };
    const { status } = await this.request('POST', `${TESTING}/settles`, settle);
    if (!status.settled) throw new PintleError(`not settled: ${status.message}`);
  }

  /** What each client has done, and what of it is suspicious: the `status` of a `Report`. */
  async report() {
    const report = { apiVersion: TESTING_VERSION, kind: 'Report', metadata: { name: 'now' }, spec: {} };
    return (await this.request('POST', `${TESTING}/reports`, report)).status;
  }

  /** The objects that were created, changed or deleted since the workspace began, one a line, as `pintle workspace diff` lists them. */
  async changes() {
    const words = ['workspace', 'diff', this.name, '--kubeconfig', this.server.kubeconfig()];
    const { stdout } = await promisify(execFile)(find(), words, { timeout: DIFF_MILLISECONDS, maxBuffer: DIFF_BYTES });
    const lines = stdout.trimEnd().split('\n');
    return lines.length > DIFF_LINES ? [...lines.slice(0, DIFF_LINES), '...'].join('\n') : lines.join('\n');
  }

  /** A kubeconfig as an object. */
  kubeconfigContent() {
    const { name, url, server: { credentials } } = this;
    const encoded = (text) => Buffer.from(text).toString('base64');
    return {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': name,
      clusters: [{ name, cluster: { server: url, 'certificate-authority-data': encoded(credentials.ca) } }],
      users: [{ name, user: { 'client-certificate-data': encoded(credentials.cert), 'client-key-data': encoded(credentials.key) } }],
      contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
    };
  }

  /** The path of a kubeconfig, which exists as long as the server. */
  kubeconfig() {
    if (!this.file) {
      this.file = join(this.server.data, `${this.name}.kubeconfig`);
      writeFileSync(this.file, JSON.stringify(this.kubeconfigContent()), { mode: 0o600 });
    }
    return this.file;
  }

  /** A `KubeConfig` of the package @kubernetes/client-node. */
  async kubeConfig() {
    const { KubeConfig } = await import('@kubernetes/client-node');
    const config = new KubeConfig();
    config.loadFromString(JSON.stringify(this.kubeconfigContent()));
    return config;
  }

  /** Applies manifests, server-side: files, or directories with everything below them. Returns the objects. */
  async apply(...paths) {
    const objects = (await Promise.all(paths.map(manifests))).flat();
    const rank = ({ kind }) => (FIRST.includes(kind) ? FIRST.indexOf(kind) : FIRST.length);
    objects.sort((a, b) => rank(a) - rank(b));
    const applied = [];
    for (const object of objects) applied.push(await this.applyObject(object));
    return applied;
  }

  /** Applies one object. */
  async applyObject(object) {
    const { apiVersion, kind, metadata } = object;
    const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { plural, namespaced } = await this.plural(base, apiVersion, kind);
    const place = namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : '';
    const path = `${base}${place}/${plural}/${metadata.name}?fieldManager=pintle-server&force=true`;
    return this.request('PATCH', path, object, 'application/apply-patch+yaml');
  }

  async plural(base, apiVersion, kind) {
    const key = `${apiVersion} ${kind}`;
    if (!this.plurals.has(key)) {
      const { resources } = await this.request('GET', base).catch((error) => {
        if (error.code !== 404) throw error;
        return { resources: [] };
      });
      for (const { name, kind, namespaced } of resources) {
        if (!name.includes('/')) this.plurals.set(`${apiVersion} ${kind}`, { plural: name, namespaced });
      }
    }
    if (!this.plurals.has(key)) {
      throw new PintleError(`no matches for kind "${kind}" in version "${apiVersion}": apply its CustomResourceDefinition first`);
    }
    return this.plurals.get(key);
  }
}

/** The clock of a workspace; see https://github.com/pintle/pintle/blob/main/docs/src/guides/control-time.md. */
export class Clock {
  constructor(workspace) {
    this.workspace = workspace;
  }

  /**
   * Stops it, at a `time` (a `Date` or a text) if one is given. A `seed` makes uids and generated names repeatable, if the clock has not
   * been changed before.
   */
  stop({ time, seed } = {}) {
    return this.change({ stopped: true, ...(time && { time: shown(time) }), ...(seed !== undefined && { seed }) });
  }

  /** Advances it by milliseconds, or a text such as `90s` or `72h`. What becomes due is done when `settle` returns. */
  async advance(by) {
    const found = await this.workspace.request('GET', CLOCK).catch((error) => {
      if (error.code !== 404) throw error;
    });
    return this.change({ advance: `${milliseconds(found?.spec.advance ?? 0) + milliseconds(by)}ms` });
  }

  /** Sets it to a `Date`, or a text such as `2030-01-01T00:00:00Z`, which is not before what it shows. */
  set(time) {
    return this.change({ time: shown(time) });
  }

  /** Lets it go on from what it shows. */
  resume() {
    return this.change({ stopped: false });
  }

  /** The time is that of the machine again. */
  async delete() {
    await this.workspace.request('DELETE', CLOCK);
  }

  async change(spec) {
    try {
      await this.workspace.request('PATCH', CLOCK, { spec }, 'application/merge-patch+json');
    } catch (error) {
      if (error.code !== 404) throw error;
      const clock = { apiVersion: TESTING_VERSION, kind: 'Clock', metadata: { name: 'clock' }, spec };
      await this.workspace.request('POST', `${TESTING}/clocks`, clock);
    }
  }
}

const shown = (time) => (time instanceof Date ? time.toISOString() : time);

function milliseconds(by) {
  if (typeof by === 'number') return Math.round(by);
  if (!/^([\d.]+(ms|s|m|h))+$/.test(by)) throw new PintleError(`${by} is no duration such as 90s or 1h30m`);
  const parts = [...by.matchAll(/([\d.]+)(ms|s|m|h)/g)];
  return Math.round(parts.reduce((sum, [, number, unit]) => sum + number * UNITS[unit], 0));
}

/** The objects in a file, or in the files below a directory, by name. */
async function manifests(path) {
  if ((await stat(path)).isDirectory()) {
    const files = (await readdir(path, { recursive: true })).sort().filter((name) => ['.yaml', '.yml', '.json'].includes(extname(name)));
    if (!files.length) throw new PintleError(`${path} has no file that ends with .yaml, .yml or .json`);
    return (await Promise.all(files.map((name) => manifests(join(path, name))))).flat();
  }
  const documents = await decoded(path, await readFile(path, 'utf8')).catch((error) => {
    // the message has the line and the column
    throw error instanceof PintleError ? error : new PintleError(`${path}: ${error.message}`);
  });
  return documents.filter(Boolean).flatMap((document) => (document.kind === 'List' ? document.items : [document]));
}

async function decoded(path, text) {
  if (extname(path) === '.json') return [JSON.parse(text)];
  let yaml;
  try {
    yaml = await import('js-yaml');
  } catch {
    throw new PintleError(`${path} is YAML, and js-yaml is not installed: npm install js-yaml`);
  }
  return (yaml.loadAll ?? yaml.default.loadAll)(text);
}

/** Excepts the server from the proxies of the environment, for other clients and for child processes. */
function exceptFromProxies() {
  for (const name of ['NO_PROXY', 'no_proxy']) {
    const known = (process.env[name] ?? '').split(',').filter(Boolean);
    if (!known.includes(LOOPBACK) && !known.includes('*')) process.env[name] = [...known, LOOPBACK].join(',');
  }
}
