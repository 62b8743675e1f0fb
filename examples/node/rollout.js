// Restarts the Deployments that name a ConfigMap in the annotation example.com/config when its data change.

import { createHash } from 'node:crypto';
import { AppsV1Api, CoreV1Api, makeInformer, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';

export const CONFIG = 'example.com/config';
export const DATA = 'example.com/config-data';
const RETRY_MILLISECONDS = 50;

/** A text that is another one when the data are others, in whichever order they are. */
export function digest(data = {}) {
  return createHash('sha256').update(JSON.stringify(Object.entries(data).sort())).digest('hex').slice(0, 16);
}

/** Runs until `stop` is called on what it returns. */
export async function start(kubeConfig) {
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const apps = kubeConfig.makeApiClient(AppsV1Api);
  const informer = makeInformer(kubeConfig, '/api/v1/configmaps', () => core.listConfigMapForAllNamespaces());
  let stopped = false;
  const later = (action) => {
    if (!stopped) setTimeout(() => !stopped && action(), RETRY_MILLISECONDS).unref();
  };
  const changed = (configMap) => roll(apps, configMap).catch(() => later(() => changed(configMap)));
  informer.on('add', changed);
  informer.on('update', changed);
  // a watch that has failed is begun anew, with a list
  const restart = () => later(() => informer.start().catch(restart));
  informer.on('error', restart);
  await informer.start();
  return {
    stop: async () => {
      stopped = true;
      await informer.stop();
    },
  };
}

async function roll(apps, { metadata: { name, namespace }, data }) {
  const wanted = digest(data);
  for (const { metadata, spec } of (await apps.listNamespacedDeployment({ namespace })).items) {
    if (metadata.annotations?.[CONFIG] !== name || spec.template.metadata.annotations?.[DATA] === wanted) continue;
    const body = { spec: { template: { metadata: { annotations: { [DATA]: wanted } } } } };
    await apps.patchNamespacedDeployment({ name: metadata.name, namespace, body }, setHeaderOptions('Content-Type', PatchStrategy.MergePatch));
  }
}
