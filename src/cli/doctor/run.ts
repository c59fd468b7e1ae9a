import { documentHead, secondsSince } from '../../jobs/index.js';
import { printable } from '../../io/index.js';
import { probeSentence, renderProbes } from '../../report/text/index.js';
import { writeJson } from '../files/publish.js';
import { toolVersion } from '../tool-version.js';
import type { DoctorCommandOptions } from './options.js';
import { probeMachine } from './probes.js';

/**
 * Runs `flashproof doctor`: reports the usable parts of this machine. Returns the exit status: 1 where something is missing
 * that flashproof needs.
 * @throws RequestError when the JSON file cannot be written
 */
export async function runDoctor({ json, quiet }: DoctorCommandOptions): Promise<number> {
  const start = performance.now();
  const probes = probeMachine().map((probe) => ({ ...probe, found: printable(probe.found) }));
  const pass = probes.every(({ isNeeded, isUsable }) => isUsable || !isNeeded);
  if (json !== '-' && quiet !== true) process.stdout.write(renderProbes(probes));
  if (json !== undefined)
    await writeJson(json, {
      ...documentHead('doctor', toolVersion(), secondsSince(start)),
      verdict: { pass, sentence: probeSentence(probes) },
      probes,
    });
  return pass ? 0 : 1;
}
