// @kubernetes/client-node against pintle: typed and generic objects, informer, watch, apply, and its ApiException.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import * as k8s from '@kubernetes/client-node'
import WebSocket from 'ws'
import { end, eventually, refusal, run, test } from './cases.js'

const config = new k8s.KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(k8s.CoreV1Api)
const custom = config.makeApiClient(k8s.CustomObjectsApi)
const extensions = config.makeApiClient(k8s.ApiextensionsV1Api)
const generic = k8s.KubernetesObjectApi.makeApiClient(config)

const group = 'harbor.example.com', version = 'v1', plural = 'boats'
const apiVersion = `${group}/${version}`, kind = 'Boat', definition = `${plural}.${group}`

const namespace = async () => (await core.createNamespace({ body: { metadata: { generateName: 'case-' } } })).metadata.name
const boat = (name, spec = { sails: 1 }, namespace = undefined) => ({ apiVersion, kind, metadata: { name, namespace }, spec })
const patched = type => k8s.setHeaderOptions('Content-Type', type)
const body = error => (typeof error.body === 'string' ? JSON.parse(error.body) : error.body)

test('a definition is created and established', async () => {
  await generic.create(k8s.loadYaml(readFileSync(process.env.DEFINITION, 'utf8')))
  await eventually(async () => {
    const found = await extensions.readCustomResourceDefinition({ name: definition })
    return found.status?.conditions?.some(each => each.type === 'Established' && each.status === 'True')
  })
})

test('config maps live their life by the typed API', async () => {
  const space = await namespace(), at = { namespace: space, name: 'settings' }
  const made = await core.createNamespacedConfigMap({
    namespace: space, body: { metadata: { name: 'settings', labels: { tier: 'front' } }, data: { key: 'value' } },
  })
  assert(made.metadata.creationTimestamp instanceof Date)
  made.data.more = 'values'
  await core.replaceNamespacedConfigMap({ ...at, body: made })
  await core.patchNamespacedConfigMap({ ...at, body: { data: { key: null } } }, patched(k8s.PatchStrategy.StrategicMergePatch))
  await core.patchNamespacedConfigMap({ ...at, body: [{ op: 'add', path: '/data/json', value: '1' }] }, patched(k8s.PatchStrategy.JsonPatch))
  assert.deepEqual((await core.readNamespacedConfigMap(at)).data, { more: 'values', json: '1' })
  assert.equal((await core.listNamespacedConfigMap({ namespace: space, labelSelector: 'tier=front' })).items.length, 1)
  await core.deleteNamespacedConfigMap(at)
  await refusal(core.readNamespacedConfigMap(at), 404)
})

test('custom objects live their life', async () => {
  const at = { group, version, plural, namespace: await namespace() }, anna = { ...at, name: 'anna' }
  const made = await custom.createNamespacedCustomObject({ ...at, body: boat('anna', { sails: 2 }) })
  assert.equal(made.spec.port, 'Palos')
  made.spec.sails = 3
  assert.equal((await custom.replaceNamespacedCustomObject({ ...anna, body: made })).metadata.generation, 2)
  const merge = patched(k8s.PatchStrategy.MergePatch)
  await custom.patchNamespacedCustomObject({ ...anna, body: { spec: { port: 'Genoa' } } }, merge)
  const told = await custom.patchNamespacedCustomObjectStatus({ ...anna, body: { status: { phase: 'afloat' } } }, merge)
  assert.deepEqual(told.status, { phase: 'afloat' })
  const scale = await custom.getNamespacedCustomObjectScale(anna)
  scale.spec.replicas = 4
  await custom.replaceNamespacedCustomObjectScale({ ...anna, body: scale })
  assert.equal((await custom.getNamespacedCustomObject(anna)).spec.replicas, 4)
  for (let number = 0; number < 12; number++) {
    await custom.createNamespacedCustomObject({ ...at, body: boat(`boat-${number}`) })
  }
  let seen = 0, _continue
  do {
    const page = await custom.listNamespacedCustomObject({ ...at, limit: 5, _continue })
    seen += page.items.length
    _continue = page.metadata.continue
  } while (_continue)
  assert.equal(seen, 13)
  assert.equal((await custom.listNamespacedCustomObject({ ...at, fieldSelector: 'spec.port=Genoa' })).items.length, 1)
  await custom.deleteCollectionNamespacedCustomObject(at)
  assert.deepEqual((await custom.listNamespacedCustomObject(at)).items, [])
})

test('generic objects are found by discovery', async () => {
  const space = await namespace()
  const made = await generic.create(boat('anna', { sails: 2 }, space))
  made.spec.sails = 3
  await generic.replace(made)
  await generic.patch({ ...boat('anna', { port: 'Lisbon' }, space) }, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch)
  assert.deepEqual((await generic.read(made)).spec, { sails: 3, port: 'Lisbon', replicas: 1 })
  assert.equal((await generic.list(apiVersion, kind, space)).items.length, 1)
  await generic.delete(made)
  await refusal(generic.read(made), 404)
})

test('two managers share a boat by apply', async () => {
  const space = await namespace()
  const apply = (manager, spec, force) =>
    generic.patch(boat('anna', spec, space), undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply)
  await apply('first', { sails: 1, crew: [{ name: 'pip', rank: 'boy' }] })
  const both = await apply('second', { sails: 1, crew: [{ name: 'ahab', rank: 'captain' }] })
  assert.deepEqual(both.spec.crew.map(each => each.name), ['pip', 'ahab'])
  const conflict = body(await refusal(apply('third', { sails: 1, crew: [{ name: 'ahab', rank: 'mate' }] }), 409))
  assert.equal(conflict.details.causes[0].field, '.spec.crew[name="ahab"].rank')
  await apply('third', { sails: 1, crew: [{ name: 'ahab', rank: 'mate' }] }, true)
  const left = await apply('first', { sails: 1 })
  assert.deepEqual(left.spec.crew, [{ name: 'ahab', rank: 'mate' }])
})

test('refusals are an ApiException with the status', async () => {
  const at = { group, version, plural, namespace: await namespace() }
  const missing = await refusal(custom.getNamespacedCustomObject({ ...at, name: 'none' }), 404)
  assert(missing instanceof k8s.ApiException)
  const made = await custom.createNamespacedCustomObject({ ...at, body: boat('anna') })
  assert.equal(body(await refusal(custom.createNamespacedCustomObject({ ...at, body: boat('anna') }), 409)).reason, 'AlreadyExists')
  await custom.replaceNamespacedCustomObject({ ...at, name: 'anna', body: { ...made, spec: { sails: 2 } } })
  const stale = custom.replaceNamespacedCustomObject({ ...at, name: 'anna', body: { ...made, spec: { sails: 3 } } })
  assert.equal(body(await refusal(stale, 409)).reason, 'Conflict')
  const invalid = body(await refusal(custom.createNamespacedCustomObject({ ...at, body: boat('Anna', { sails: 21 }) }), 422))
  const fields = invalid.details.causes.map(each => each.field)
  assert(fields.includes('metadata.name') && fields.includes('spec.sails'), String(fields))
  const unknown = custom.createNamespacedCustomObject({ ...at, body: boat('berta', { sails: 1, speck: 1 }), fieldValidation: 'Strict' })
  assert.equal(body(await refusal(unknown, 400)).reason, 'BadRequest')
})

for (const [what, how] of [['restart', 'restart'], ['crash', 'kill']]) {
  test(`an informer lives over a ${what}`, async () => {
    const at = { group, version, plural, namespace: await namespace() }
    const path = `/apis/${group}/${version}/namespaces/${at.namespace}/${plural}`
    const informer = k8s.makeInformer(config, path, () => custom.listNamespacedCustomObject(at))
    const seen = []
    for (const verb of ['add', 'update', 'delete']) informer.on(verb, object => seen.push(`${verb} ${object.metadata.name}`))
    informer.on('error', () => setTimeout(() => informer.start(), 20)) // as its documentation has it
    await custom.createNamespacedCustomObject({ ...at, body: boat('early') })
    await informer.start()
    await custom.createNamespacedCustomObject({ ...at, body: boat('between') })
    await eventually(() => seen.length === 2)
    await end(how)
    await custom.createNamespacedCustomObject({ ...at, body: boat('late') })
    await custom.deleteNamespacedCustomObject({ ...at, name: 'early' })
    await eventually(() => seen.length === 4)
    assert.deepEqual(seen, ['add early', 'add between', 'add late', 'delete early'])
    assert.equal(informer.list(at.namespace).length, 2)
    await informer.stop()
  })
}

test('a watch from the current state ends its beginning with a bookmark', async () => {
  const at = { group, version, plural, namespace: await namespace() }
  await custom.createNamespacedCustomObject({ ...at, body: boat('anna') })
  const seen = [], asked = { sendInitialEvents: true, allowWatchBookmarks: true, resourceVersionMatch: 'NotOlderThan' }
  const path = `/apis/${group}/${version}/namespaces/${at.namespace}/${plural}`
  const request = await new k8s.Watch(config).watch(path, asked, (type, object) => seen.push([type, object]), () => {})
  await eventually(() => seen.length === 2)
  assert.deepEqual(seen.map(([type]) => type), ['ADDED', 'BOOKMARK'])
  assert.equal(seen[1][1].metadata.annotations['k8s.io/initial-events-end'], 'true')
  request.abort()
})

test('a WebSocket watches, with a token as browsers show it', async () => {
  const space = await namespace(), name = 'captain', at = { namespace: space, name }
  await core.createNamespacedServiceAccount({ namespace: space, body: { metadata: { name } } })
  const { status: { token } } = await core.createNamespacedServiceAccountToken({ ...at, body: { spec: {} } })
  const shown = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
  const server = config.getCurrentCluster(), path = `/api/v1/namespaces/${space}/configmaps?watch=1`
  const open = protocols => new WebSocket(server.server.replace('https', 'wss') + path, protocols, {
    ca: Buffer.from(server.caData, 'base64'), origin: 'https://boats.example.com',
  })
  const refused = protocols => new Promise(resolve => open(protocols).once('error', error => resolve(error.message)))
  assert.match(await refused(['base64url.bearer.authorization.k8s.io.bm9ib2R5', 'v4.channel.k8s.io']), /401/)
  assert.match(await refused([shown]), /401/)
  assert.match(await refused([shown, 'v4.channel.k8s.io']), /403/)
  const rbac = config.makeApiClient(k8s.RbacAuthorizationV1Api)
  await rbac.createNamespacedRoleBinding({ namespace: space, body: {
    metadata: { name }, subjects: [{ kind: 'ServiceAccount', ...at }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
  } })
  const socket = open([shown, 'v4.channel.k8s.io']), seen = []
  socket.on('message', data => seen.push(JSON.parse(data)))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  assert.equal(socket.protocol, 'v4.channel.k8s.io')
  await core.createNamespacedConfigMap({ namespace: space, body: { metadata: { name: 'log' } } })
  await eventually(() => seen.some(({ type, object }) => type === 'ADDED' && object.metadata.name === 'log'))
  socket.close()
  await new Promise(resolve => socket.once('close', resolve))
})

test('a definition is deleted, and its objects with it', async () => {
  await extensions.deleteCustomResourceDefinition({ name: definition })
  await eventually(async () => (await extensions.listCustomResourceDefinition()).items.length === 0)
})

await run()
