import { run } from './suite.js';

run();
