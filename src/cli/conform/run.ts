import { availableParallelism } from 'node:os';
import { checkConformance, type Conformance } from '../../conform/index.js';
import { readCampaign } from '../options/campaign.js';
import type { ConformCommandOptions } from './options.js';
import { publishConformance } from './publish.js';
import { createPeriodicProgress } from '../terminal/progress.js';

/** Exit statuses: every model agrees, one does not. */
const agrees = 0;
const differs = 1;

/**
 * Runs `flashproof conform`: compares, prints and writes the result. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runConform(
  instructions: readonly string[],
  options: ConformCommandOptions,
): Promise<number> {
  const { exhaustive = false, threads = availableParallelism(), captures, seed } = options;
  const campaign = readCampaign(options);
  if (campaign !== null) {
    const { runConformCampaign } = await import('./campaign.js');
    const pass = await runConformCampaign(instructions, campaign, threads, options);
    return pass ? agrees : differs;
  }
  const start = performance.now();
  const progress = createPeriodicProgress('conform');
  let conformance: Conformance;
  try {
    conformance = await checkConformance({
      instructions,
      exhaustive,
      threads,
      seed,
      ...(captures === undefined ? {} : { captures }),
      progress: (done, total) => progress.update(done / total),
    });
  } finally {
    progress.done();
  }
  const seconds = (performance.now() - start) / 1000;
  await publishConformance(conformance, seconds, options);
  return conformance.pass ? agrees : differs;
}
