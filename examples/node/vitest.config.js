export default { test: { globalSetup: ['pintle-server/setup'] } };
