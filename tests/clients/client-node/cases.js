// Runs the test cases. Exchanges lines with tests/blackbox/test_clients.py, which starts the program.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

const stdin = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const cases = []

export const test = (name, run) => cases.push([name, run])

export async function run() {
  for (const [name, run] of cases) {
    try {
      await Promise.race([run(), timeout()])
      console.log(`ok ${name}`)
    } catch (error) {
      process.exitCode = 1
      console.log(`FAIL ${name}: ${String(error?.stack ?? error).replaceAll('\n', ' ')}`)
    }
  }
  process.exit()
}

const timeout = async () => {
  await delay(60_000, undefined, { ref: false })
  throw new Error('timeout')
}

// Restarts the server with the same data and port: the command is 'restart' (SIGTERM) or 'kill' (SIGKILL).
export async function restartServer(command) {
  console.log(command)
  assert.equal((await stdin.next()).value, 'started')
}

// Calls check() until its value is truthy, and returns the value.
export async function eventually(check) {
  for (;;) {
    const value = await check()
    if (value) return value
    await delay(20)
  }
}

// Returns the error with which the promise must be rejected.
export async function rejection(promise, code) {
  const error = await promise.then(() => assert.fail('the request was not rejected'), error => error)
  assert.equal(error.code, code, String(error))
  return error
}
