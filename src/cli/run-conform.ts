import { availableParallelism } from 'node:os';
import { checkConformance, conformanceSentence, renderConformance } from '../conform/index.js';
import type { Conformance } from '../conform/index.js';
import type { ConformCommandOptions } from './conform.js';
import { createPeriodicProgress } from './periodic-progress.js';
import { toolVersion } from './tool-version.js';
import { writeJson } from './write-json.js';

/** Exit statuses: every model agrees, one does not. */
const agrees = 0;
const differs = 1;

/** The JSON document of a conformance. */
function document(conformance: Conformance, seconds: number): object {
  const { pass, ...rest } = conformance;
  return {
    kind: 'conform',
    schemaVersion: 1,
    tool: { name: 'flashproof', version: toolVersion() },
    created: new Date().toISOString(),
    seconds,
    verdict: { pass, sentence: conformanceSentence(conformance) },
    ...rest,
  };
}

/**
 * Runs `flashproof conform`: compares, prints and writes the result. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runConform(
  instructions: readonly string[],
  options: ConformCommandOptions,
): Promise<number> {
  const { exhaustive = false, threads = availableParallelism(), captures, json, seed } = options;
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
  if (json !== undefined) await writeJson(json, document(conformance, seconds));
  if (json !== '-') process.stdout.write(renderConformance(conformance));
  return conformance.pass ? agrees : differs;
}
