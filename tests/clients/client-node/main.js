// Tests of @kubernetes/client-node with Pintle: typed and generic objects, informer, watch, apply, and its ApiException.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import * as k8s from '@kubernetes/client-node'
import WebSocket from 'ws'
import { eventually, rejection, restartServer, run, test } from './cases.js'

const config = new k8s.KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(k8s.CoreV1Api)
const custom = config.makeApiClient(k8s.CustomObjectsApi)
const extensions = config.makeApiClient(k8s.ApiextensionsV1Api)
const generic = k8s.KubernetesObjectApi.makeApiClient(config)

const group = 'harbor.example.com', version = 'v1', plural = 'boats'
const apiVersion = `${group}/${version}`, kind = 'Boat', crdName = `${plural}.${group}`

const createNamespace = async () => (await core.createNamespace({ body: { metadata: { generateName: 'case-' } } })).metadata.name
const boat = (name, spec = { sails: 1 }, namespace = undefined) => ({ apiVersion, kind, metadata: { name, namespace }, spec })
const contentType = type => k8s.setHeaderOptions('Content-Type', type)
const body = error => (typeof error.body === 'string' ? JSON.parse(error.body) : error.body)

test('a CRD is created and becomes established', async () => {
  await generic.create(k8s.loadYaml(readFileSync(process.env.DEFINITION, 'utf8')))
  await eventually(async () => {
    const crd = await extensions.readCustomResourceDefinition({ name: crdName })
    return crd.status?.conditions?.some(each => each.type === 'Established' && each.status === 'True')
  })
})

test('ConfigMaps are created, replaced, patched, listed and deleted by the typed API', async () => {
  const namespace = await createNamespace(), at = { namespace, name: 'settings' }
  const created = await core.createNamespacedConfigMap({
    namespace, body: { metadata: { name: 'settings', labels: { tier: 'front' } }, data: { key: 'value' } },
  })
  assert(created.metadata.creationTimestamp instanceof Date)
  created.data.more = 'values'
  await core.replaceNamespacedConfigMap({ ...at, body: created })
  await core.patchNamespacedConfigMap({ ...at, body: { data: { key: null } } }, contentType(k8s.PatchStrategy.StrategicMergePatch))
  await core.patchNamespacedConfigMap({ ...at, body: [{ op: 'add', path: '/data/json', value: '1' }] }, contentType(k8s.PatchStrategy.JsonPatch))
  assert.deepEqual((await core.readNamespacedConfigMap(at)).data, { more: 'values', json: '1' })
  assert.equal((await core.listNamespacedConfigMap({ namespace, labelSelector: 'tier=front' })).items.length, 1)
  await core.deleteNamespacedConfigMap(at)
  await rejection(core.readNamespacedConfigMap(at), 404)
})

test('custom objects are created, replaced, patched, scaled, listed and deleted', async () => {
  const at = { group, version, plural, namespace: await createNamespace() }, anna = { ...at, name: 'anna' }
  const created = await custom.createNamespacedCustomObject({ ...at, body: boat('anna', { sails: 2 }) })
  assert.equal(created.spec.port, 'Palos')
  created.spec.sails = 3
  assert.equal((await custom.replaceNamespacedCustomObject({ ...anna, body: created })).metadata.generation, 2)
  const merge = contentType(k8s.PatchStrategy.MergePatch)
  await custom.patchNamespacedCustomObject({ ...anna, body: { spec: { port: 'Genoa' } } }, merge)
  const updated = await custom.patchNamespacedCustomObjectStatus({ ...anna, body: { status: { phase: 'afloat' } } }, merge)
  assert.deepEqual(updated.status, { phase: 'afloat' })
  const scale = await custom.getNamespacedCustomObjectScale(anna)
  scale.spec.replicas = 4
  await custom.replaceNamespacedCustomObjectScale({ ...anna, body: scale })
  assert.equal((await custom.getNamespacedCustomObject(anna)).spec.replicas, 4)
  for (let number = 0; number < 12; number++) {
    await custom.createNamespacedCustomObject({ ...at, body: boat(`boat-${number}`) })
  }
  let count = 0, _continue
  do {
    const page = await custom.listNamespacedCustomObject({ ...at, limit: 5, _continue })
    count += page.items.length
    _continue = page.metadata.continue
  } while (_continue)
  assert.equal(count, 13)
  assert.equal((await custom.listNamespacedCustomObject({ ...at, fieldSelector: 'spec.port=Genoa' })).items.length, 1)
  await custom.deleteCollectionNamespacedCustomObject(at)
  assert.deepEqual((await custom.listNamespacedCustomObject(at)).items, [])
})

test('generic objects are mapped by discovery', async () => {
  const namespace = await createNamespace()
  const created = await generic.create(boat('anna', { sails: 2 }, namespace))
  created.spec.sails = 3
  await generic.replace(created)
  await generic.patch({ ...boat('anna', { port: 'Lisbon' }, namespace) }, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch)
  assert.deepEqual((await generic.read(created)).spec, { sails: 3, port: 'Lisbon', replicas: 1 })
  assert.equal((await generic.list(apiVersion, kind, namespace)).items.length, 1)
  await generic.delete(created)
  await rejection(generic.read(created), 404)
})

test('two field managers apply parts of a custom resource', async () => {
  const namespace = await createNamespace()
  const apply = (manager, spec, force) =>
    generic.patch(boat('anna', spec, namespace), undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply)
  await apply('first', { sails: 1, crew: [{ name: 'pip', rank: 'boy' }] })
  const both = await apply('second', { sails: 1, crew: [{ name: 'ahab', rank: 'captain' }] })
  assert.deepEqual(both.spec.crew.map(each => each.name), ['pip', 'ahab'])
  const conflict = body(await rejection(apply('third', { sails: 1, crew: [{ name: 'ahab', rank: 'mate' }] }), 409))
  assert.equal(conflict.details.causes[0].field, '.spec.crew[name="ahab"].rank')
  await apply('third', { sails: 1, crew: [{ name: 'ahab', rank: 'mate' }] }, true)
  const remaining = await apply('first', { sails: 1 })
  assert.deepEqual(remaining.spec.crew, [{ name: 'ahab', rank: 'mate' }])
})

test('rejected requests are an ApiException with the Status', async () => {
  const at = { group, version, plural, namespace: await createNamespace() }
  const missing = await rejection(custom.getNamespacedCustomObject({ ...at, name: 'none' }), 404)
  assert(missing instanceof k8s.ApiException)
  const first = await custom.createNamespacedCustomObject({ ...at, body: boat('anna') })
  assert.equal(body(await rejection(custom.createNamespacedCustomObject({ ...at, body: boat('anna') }), 409)).reason, 'AlreadyExists')
  await custom.replaceNamespacedCustomObject({ ...at, name: 'anna', body: { ...first, spec: { sails: 2 } } })
  const stale = custom.replaceNamespacedCustomObject({ ...at, name: 'anna', body: { ...first, spec: { sails: 3 } } })
  assert.equal(body(await rejection(stale, 409)).reason, 'Conflict')
  const invalid = body(await rejection(custom.createNamespacedCustomObject({ ...at, body: boat('Anna', { sails: 21 }) }), 422))
  const fields = invalid.details.causes.map(each => each.field)
  assert(fields.includes('metadata.name') && fields.includes('spec.sails'), String(fields))
  const unknown = custom.createNamespacedCustomObject({ ...at, body: boat('berta', { sails: 1, speck: 1 }), fieldValidation: 'Strict' })
  assert.equal(body(await rejection(unknown, 400)).reason, 'BadRequest')
})

for (const [interruption, command] of [['restart', 'restart'], ['crash', 'kill']]) {
  test(`an informer survives a ${interruption} of the server`, async () => {
    const at = { group, version, plural, namespace: await createNamespace() }
    const path = `/apis/${group}/${version}/namespaces/${at.namespace}/${plural}`
    const informer = k8s.makeInformer(config, path, () => custom.listNamespacedCustomObject(at))
    const events = []
    for (const verb of ['add', 'update', 'delete']) informer.on(verb, object => events.push(`${verb} ${object.metadata.name}`))
    informer.on('error', () => setTimeout(() => informer.start(), 20)) // as its documentation recommends
    await custom.createNamespacedCustomObject({ ...at, body: boat('early') })
    await informer.start()
    await custom.createNamespacedCustomObject({ ...at, body: boat('between') })
    await eventually(() => events.length === 2)
    await restartServer(command)
    await custom.createNamespacedCustomObject({ ...at, body: boat('late') })
    await custom.deleteNamespacedCustomObject({ ...at, name: 'early' })
    await eventually(() => events.length === 4)
    assert.deepEqual(events, ['add early', 'add between', 'add late', 'delete early'])
    assert.equal(informer.list(at.namespace).length, 2)
    await informer.stop()
  })
}

test('the initial events of a watch end with a bookmark', async () => {
  const at = { group, version, plural, namespace: await createNamespace() }
  await custom.createNamespacedCustomObject({ ...at, body: boat('anna') })
  const events = [], query = { sendInitialEvents: true, allowWatchBookmarks: true, resourceVersionMatch: 'NotOlderThan' }
  const path = `/apis/${group}/${version}/namespaces/${at.namespace}/${plural}`
  const request = await new k8s.Watch(config).watch(path, query, (type, object) => events.push([type, object]), () => {})
  await eventually(() => events.length === 2)
  assert.deepEqual(events.map(([type]) => type), ['ADDED', 'BOOKMARK'])
  assert.equal(events[1][1].metadata.annotations['k8s.io/initial-events-end'], 'true')
  request.abort()
})

test('a watch by WebSocket, with the token in a subprotocol as browsers send it', async () => {
  const namespace = await createNamespace(), name = 'captain', at = { namespace, name }
  await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name } } })
  const { status: { token } } = await core.createNamespacedServiceAccountToken({ ...at, body: { spec: {} } })
  const subprotocol = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
  const server = config.getCurrentCluster(), path = `/api/v1/namespaces/${namespace}/configmaps?watch=1`
  const open = protocols => new WebSocket(server.server.replace('https', 'wss') + path, protocols, {
    ca: Buffer.from(server.caData, 'base64'), origin: 'https://boats.example.com',
  })
  const handshakeError = protocols => new Promise(resolve => open(protocols).once('error', error => resolve(error.message)))
  assert.match(await handshakeError(['base64url.bearer.authorization.k8s.io.bm9ib2R5', 'v4.channel.k8s.io']), /401/)
  assert.match(await handshakeError([subprotocol]), /401/)
  assert.match(await handshakeError([subprotocol, 'v4.channel.k8s.io']), /403/)
  const rbac = config.makeApiClient(k8s.RbacAuthorizationV1Api)
  await rbac.createNamespacedRoleBinding({ namespace, body: {
    metadata: { name }, subjects: [{ kind: 'ServiceAccount', ...at }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
  } })
  const socket = open([subprotocol, 'v4.channel.k8s.io']), events = []
  socket.on('message', data => events.push(JSON.parse(data)))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  assert.equal(socket.protocol, 'v4.channel.k8s.io')
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'log' } } })
  await eventually(() => events.some(({ type, object }) => type === 'ADDED' && object.metadata.name === 'log'))
  socket.close()
  await new Promise(resolve => socket.once('close', resolve))
})

test('a CRD is deleted', async () => {
  await extensions.deleteCustomResourceDefinition({ name: crdName })
  await eventually(async () => (await extensions.listCustomResourceDefinition()).items.length === 0)
})

await run()
