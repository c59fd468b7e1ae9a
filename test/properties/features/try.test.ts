import { it } from 'vitest';
import {
  checkKernel,
  describeFailures,
  featureKinds,
  lawIds,
  laws,
  UnsupportedProblem,
  type AttentionKernel,
} from '../../../properties/index.js';
import { RequestError } from '../../../src/request-error.js';
import { featureKernel } from '../../kernels/features/index.js';
const inner = featureKernel({ blockKeys: 64 });
const kernel: AttentionKernel = (p, c) => {
  try {
    return inner(p, c);
  } catch (e) {
    if (e instanceof RequestError) throw new UnsupportedProblem(e.message);
    throw e;
  }
};
it('tries', { timeout: 600000 }, async () => {
  const only = process.env['L']?.split(',');
  const strength = process.env['B'] ? 'bits' : 'bound';
  for (const feature of (process.env['F'] ?? featureKinds.join()).split(',')) {
    const result = await checkKernel(
      kernel,
      {
        features: feature === 'all' ? featureKinds : [feature as 'mask'],
        formats: feature === 'descale' ? ['e4m3', 'e5m2'] : ['bf16', 'fp16', 'e4m3'],
        softcap: true,
        sizes: { keys: { max: 140 }, queries: { max: 20 } },
        laws: Object.fromEntries(
          lawIds.map((l) => [
            l,
            (laws[l].strengths as readonly string[]).includes(strength)
              ? strength
              : (laws[l].strengths as readonly string[])[0],
          ]),
        ) as never,
      },
      {
        runs: Number(process.env['R'] ?? 6),
        seed: Number(process.env['S'] ?? 1),
        laws: lawIds.filter((l) =>
          only
            ? only.includes(l)
            : strength === 'bits'
              ? (laws[l].strengths as readonly string[]).includes('bits') &&
                !['exact', 'exact-exp2', 'key-permutation', 'weights-sum-to-one'].includes(l)
              : true,
        ),
        shrinkSeconds: 2,
      },
    );
    console.log(
      feature,
      result.seconds.toFixed(1),
      result.laws
        .map(
          (l) =>
            `${l.id}:${l.status}:${l.tried}${l.skipped ? ` (${l.skipped})` : ''} ${l.seconds.toFixed(1)}s`,
        )
        .filter((x) => process.env['V'] || !/holds/.test(x))
        .join('; '),
    );
    if (!result.pass) console.log(describeFailures(result).slice(0, 3000));
  }
});
