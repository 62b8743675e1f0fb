// Tests as those of users are, which a file for each worker runs.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CoreV1Api } from '@kubernetes/client-node';
import { withTemplate } from 'pintle-server/jest';

const test = withTemplate('built', (workspace) => workspace.request('POST', '/api/v1/namespaces', { metadata: { name: 'built' } }));

export function run() {
  for (let number = 0; number < 20; number++) {
    test(`workspaces are apart ${number}`, async ({ workspace }) => {
      writeFileSync(join(process.env.PIDS, String(workspace.server.pid)), '');
      const api = (await workspace.kubeConfig()).makeApiClient(CoreV1Api);
      // fails if another test has done so
      await api.createNamespacedConfigMap({ namespace: 'built', body: { metadata: { name: 'own' } } });
      const { items } = await api.listNamespacedConfigMap({ namespace: 'built' });
      expect(items.map(({ metadata }) => metadata.name)).toEqual(['own']);
    });
  }
}
