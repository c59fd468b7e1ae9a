import * as fc from 'fast-check';
import { testSeed } from './effort.js';

// A property that names no seed of its own draws by TEST_SEED, so that one number replays a run.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: testSeed });
