export default { globalSetup: 'pintle-server/setup', maxWorkers: 2 };
