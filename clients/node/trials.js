// Plans of changes and trials of controllers: the commands `pintle plan` and `pintle trial`, which need no server.

import { spawn } from 'node:child_process';
import { PintleError, find } from './binary.js';

/** The plan of a change, such as `plan('--from', 'cluster.tar.gz', '-f', 'deploy')`, with the arguments of `pintle plan`. */
export const plan = (...words) => result('plan', words);

/** The trial of a scenario, such as `trial('trial.yaml', '--budget', '1m')`, with the arguments of `pintle trial`. */
export const trial = (...words) => result('trial', words);

async function result(command, words) {
  const program = find();
  const child = spawn(program, [command, '--output=json', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  const texts = ['stdout', 'stderr'].map(async (name) => {
    const pieces = [];
    for await (const piece of child[name]) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  });
  const code = await new Promise((done, failed) => {
    child.once('error', (error) => failed(new PintleError(`cannot run ${program}: ${error.message}`)));
    child.once('close', done);
  });
  const [out, err] = await Promise.all(texts);
  if (code === 0 || code === 1) return JSON.parse(out);
  // what was done until then comes first
  throw new PintleError(err.trim().split('\n').at(-1).replace(/^pintle: /, '') || `pintle ${command} ended with ${code}`);
}
