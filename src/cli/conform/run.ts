import { availableParallelism } from 'node:os';
import { toolVersion } from '../tool-version.js';
import { conformanceSentence, renderConformance } from '../../report/text/index.js';
import { checkConformance, type Conformance, prepareConformance } from '../../conform/index.js';
import { documentHead } from '../../jobs/index.js';
import { writeJson } from '../files/publish.js';
import {
  assembleConform,
  conformRequest,
  conformShard,
  type ConformShard,
  describeShard,
  partDocument,
  runConformUnits,
  secondsOf,
  type Shard,
  wholeShard,
} from '../../campaign/index.js';
import { type Campaign, openLog, readCampaign } from '../options/campaign.js';
import type { ConformCommandOptions } from './options.js';
import { createPeriodicProgress } from '../terminal.js';

/** The JSON document of a conformance. */
function document(conformance: Conformance, seconds: number): object {
  const { pass, ...rest } = conformance;
  return {
    ...documentHead('conform', toolVersion(), seconds),
    verdict: { pass, sentence: conformanceSentence(conformance) },
    ...rest,
  };
}

/**
 * Prints a conformance, and writes the file that was asked for. The text comes first: a file that cannot
 * be written must not lose what was found.
 * @throws RequestError when the file cannot be written
 */
export async function publishConformance(
  conformance: Conformance,
  seconds: number,
  { json, quiet }: { readonly json?: string | undefined; readonly quiet?: boolean | undefined },
): Promise<void> {
  if (json !== '-')
    process.stdout.write(
      quiet === true ? `${conformanceSentence(conformance)}\n` : renderConformance(conformance),
    );
  if (json !== undefined) await writeJson(json, document(conformance, seconds));
}

function verdictOf({ units, differing }: ConformShard, shard: Shard) {
  const of = `${units} ${units === 1 ? 'unit' : 'units'} of work, ${describeShard(shard)} only`;
  const pass = differing.length === 0;
  return {
    pass,
    sentence: pass
      ? `PASS: no model differs from the silicon (${of}).`
      : `FAIL: ${differing.join(', ')} ${differing.length === 1 ? 'differs' : 'differ'} from the silicon (${of}).`,
  };
}

/**
 * Compares a shard of the blocks, or all of them with a journal, prints what was found and writes the
 * part or, of all, the result. Returns whether all models agree.
 * @throws RequestError for a request that cannot be carried out, and a journal of another
 */
async function runConformCampaign(
  instructions: readonly string[],
  campaign: Campaign,
  threads: number,
  { exhaustive = false, captures, seed, json, quiet }: ConformCommandOptions,
): Promise<boolean> {
  const scope = { instructions, exhaustive, seed };
  const prepared = await prepareConformance(
    captures === undefined ? scope : { ...scope, captures },
  );
  const request = conformRequest(prepared, { folder: captures ?? null, version: toolVersion() });
  const log = openLog(campaign, request);
  const progress = createPeriodicProgress('conform');
  const { shard } = campaign;
  try {
    await runConformUnits(prepared, shard ?? wholeShard, log, threads, (done, total) =>
      progress.update(done / total),
    );
  } finally {
    progress.done();
    log.close();
  }
  const { records } = log;
  if (shard === null) {
    const conformance = assembleConform(prepared.plan, records);
    await publishConformance(conformance, secondsOf(records.values()), { json, quiet });
    return conformance.pass;
  }
  const verdict = verdictOf(conformShard(prepared.plan, records), shard);
  const part = { request, shard, records, outOfTime: false, execution: null };
  if (json !== undefined) await writeJson(json, partDocument(part, verdict));
  if (json !== '-') process.stdout.write(`${verdict.sentence}\n`);
  return verdict.pass;
}

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
