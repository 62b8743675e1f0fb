// Prints how long a server, and a workspace for a test, take with the Node package; benches/packages runs it.

const NAMESPACES = '/api/v1/namespaces';
const began = performance.now();
const { start } = await import('pintle-server');
const server = await start();
await (await server.workspace()).request('GET', NAMESPACES);
const ready = performance.now() - began;
const template = await server.template('built', (workspace) => workspace.request('POST', NAMESPACES, { metadata: { name: 'built' } }));
const forks = [];
const tests = [];
for (let round = 0; round < 200; round++) {
  const began = performance.now();
  const workspace = await template.fork();
  forks.push(performance.now() - began);
  await workspace.request('GET', `${NAMESPACES}/built`);
  await workspace.delete();
  tests.push(performance.now() - began);
}
const median = (times) => times.sort((a, b) => a - b)[times.length / 2];
console.log(JSON.stringify({ ready, fork: median(forks), test: median(tests) }));
server.stop();
