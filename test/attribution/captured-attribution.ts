import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Fa4Configuration } from '../../kernels/index.js';
import type { Problem } from '../../src/problem/index.js';
import { casePaths, readCase, type CapturedCase } from '../audit/captured-cases.js';

const file = new URL('../../fixtures/silicon/sm_90/fa4-forward.json', import.meta.url);
const captured = JSON.parse(readFileSync(file, 'utf8')) as Record<
  string,
  { readonly settings: Readonly<Record<string, number>> }
>;

/** A captured case with the settings that its `fa4` output was made with. */
export interface ConfiguredCase extends CapturedCase {
  readonly settings: Readonly<Record<string, string>>;
  readonly configuration: Partial<Fa4Configuration>;
}

/** The captured case whose name begins with the two digits. */
export async function configuredCase(digits: string): Promise<ConfiguredCase> {
  const path = casePaths.find((one) => basename(one).startsWith(digits))!;
  const { settings } = captured[digits];
  return {
    ...(await readCase(path)),
    settings: {
      architecture: 'sm_90',
      ...Object.fromEntries(Object.entries(settings).map(([key, x]) => [key, String(x)])),
    },
    configuration: {
      architecture: 'sm_90',
      rescaleThreshold: settings['rescale.threshold'],
      exp2: {
        frequency: settings['exp2.frequency'],
        reserve: settings['exp2.reserve'],
        startFragment: settings['exp2.startFragment'],
        degree: 3,
      },
    },
  };
}

/** The first queries of a problem without a mask. */
export function firstQueries(problem: Problem, count: number): Problem {
  const { shape, format, data } = problem.q;
  const [heads, , dim] = shape;
  if (heads !== 1 || problem.causal) throw new Error('one head without a mask');
  return { ...problem, q: { format, shape: [1, count, dim], data: data.slice(0, count * dim) } };
}
