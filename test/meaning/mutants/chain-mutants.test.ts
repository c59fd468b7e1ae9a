import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect } from 'vitest';
import { type Certificate, certifyLaunch } from '../../../src/jobs/index.js';
import { RequestError } from '../../../src/request-error.js';
import { turns } from '../../setup/turns.js';

const it = turns(import.meta.url);

const recorded = fileURLToPath(
  new URL('../../../examples/linear-attention/recorded/chunk-sm_90/', import.meta.url),
);
const names = readdirSync(recorded).sort();
const scratch = mkdtempSync(join(tmpdir(), 'flashproof-chain-mutants-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface LaunchJson {
  readonly parameters: readonly Readonly<Record<string, unknown>>[];
}

/** The chain of fla's chunked gated delta rule with a change. */
interface ChainMutant {
  readonly name: string;
  /** The numbers of the launches that run, in their order. */
  readonly order: readonly number[];
  /** Of a launch, the tensor that it is given in the place of another. */
  readonly given?: readonly (readonly [launch: number, tensor: string, other: string])[];
}

const all = names.map((_, i) => i);

function swapped(first: number): ChainMutant {
  const order = all.map((i) => (i === first ? first + 1 : i === first + 1 ? first : i));
  return { name: `launches ${first + 1} and ${first + 2} swapped`, order };
}

/** The last two launches leave the results, so they stay. */
const mutants: readonly ChainMutant[] = [
  ...all.slice(0, -2).map((left) => ({
    name: `launch ${left + 1} left out`,
    order: all.filter((i) => i !== left),
  })),
  ...all.slice(0, -2).map(swapped),
  { name: 'outputs read v before the state is taken off', order: all, given: [[4, 'v_new', 'v']] },
  { name: 'outputs read u before the state is taken off', order: all, given: [[4, 'v_new', 'u']] },
  { name: 'states are passed on with the gates of tokens', order: all, given: [[3, 'o', 'g']] },
  { name: 'outputs decay by the gates of tokens', order: all, given: [[4, 'o', 'g']] },
];

/** What a changed chain comes to: without a tensor that its contract names it is refused. */
async function outcome(mutant: ChainMutant): Promise<{ readonly status: string }> {
  try {
    return await certify(mutant);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { status: 'refused' };
  }
}

async function certify({ order, given = [] }: ChainMutant): Promise<Certificate> {
  const folder = mkdtempSync(join(scratch, 'chain-'));
  cpSync(recorded, folder, { recursive: true });
  const paths = names.map((name) => join(folder, name, 'launch.json'));
  for (const [launch, tensor, other] of given) {
    const file = JSON.parse(readFileSync(paths[launch], 'utf8')) as LaunchJson;
    const parameters = file.parameters.map((one) =>
      one.tensor === tensor ? { ...one, tensor: other } : one,
    );
    expect(parameters).not.toEqual(file.parameters);
    writeFileSync(paths[launch], JSON.stringify({ ...file, parameters }));
  }
  const [path, ...following] = order.map((i) => paths[i]);
  const settings = { contract: false, races: true, samples: 1 };
  return (await certifyLaunch({ path, following, ...settings }, '0')).certificate;
}

describe('changes of a chain of launches', () => {
  it('certifies the chain as it is', { timeout: 300_000 }, async () => {
    const certificate = await certify({ name: '', order: all });
    expect(certificate).toMatchObject({ status: 'certified', reasons: [] });
    expect(certificate.chain).toHaveLength(5);
    const { shares } = certificate.outputs[1].rounding!;
    expect(new Set(shares.map(({ launch }) => launch))).not.toContain(null);
    expect(certificate.algebra!.every(({ distance }) => distance <= 1e-30)).toBe(true);
  });

  it.each(mutants)('certifies none: $name', { timeout: 600_000 }, async (mutant) => {
    const { status } = await outcome(mutant);
    expect(status).not.toBe('certified');
  });
});
