import { emulate } from '../emulate/index.js';
import { normalProblem } from './normal-problem.js';

/**
 * A process of its own for the benchmarks of the fa4 forward, so that its peak memory is the forward's
 * alone: runs a problem of the length, dimension and number of threads named on the command line
 * twice, and prints the seconds of the second run, which starts with compiled code, and the peak memory
 * in bytes as a JSON array.
 */
const [length, dim, threads] = process.argv.slice(2).map(Number) as [number, number, number];
const problem = normalProblem('bf16', { heads: 1, seqlen: length, dim });
await emulate(problem, 'fa4', { threads });
const start = performance.now();
await emulate(problem, 'fa4', { threads });
const seconds = (performance.now() - start) / 1000;
const peakBytes = process.resourceUsage().maxRSS * 1024;
process.stdout.write(JSON.stringify([seconds, peakBytes]));
