// Runs the cases of a client program and exchanges lines with tests/blackbox/test_clients.py, which started it.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const all = []

export const test = (name, run) => all.push([name, run])

export async function run() {
  for (const [name, each] of all) {
    try {
      await Promise.race([each(), limit()])
      console.log(`ok ${name}`)
    } catch (error) {
      process.exitCode = 1
      console.log(`FAIL ${name}: ${String(error?.stack ?? error).replaceAll('\n', ' ')}`)
    }
  }
  process.exit()
}

const limit = async () => {
  await delay(60_000, undefined, { ref: false })
  throw new Error('it took too long')
}

// Has the server end, by 'restart' or by 'kill', and start again with its data and its port.
export async function end(how) {
  console.log(how)
  assert.equal((await answers.next()).value, 'started')
}

// Waits until check() answers something truthy, which is then the answer.
export async function eventually(check) {
  for (;;) {
    const found = await check()
    if (found) return found
    await delay(20)
  }
}

// Answers the error that the promise must be rejected with.
export async function refusal(promise, code) {
  const error = await promise.then(() => assert.fail('it was not refused'), error => error)
  assert.equal(error.code, code, String(error))
  return error
}
