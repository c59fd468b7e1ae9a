import { auditOutputs } from '../audit/index.js';
import { openTensorFile, readProblem } from '../io/index.js';

/**
 * A process of its own for the audit benchmark, so that its peak memory is the audit's alone: reads
 * the problem and the outputs from the file named on the command line, audits, and prints the seconds
 * and the peak memory in bytes as a JSON array.
 */
const start = performance.now();
const file = await openTensorFile(process.argv[2]);
const problem = await readProblem(file);
const outputs = { out: await file.read('out'), lse: await file.read('lse') };
await file.close();
auditOutputs(problem, outputs);
const seconds = (performance.now() - start) / 1000;
const peakBytes = process.resourceUsage().maxRSS * 1024;
process.stdout.write(JSON.stringify([seconds, peakBytes]));
