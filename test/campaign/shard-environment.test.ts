import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resolveShard, undividedNotice, type Environment } from '../../src/campaign/index.js';
import { countByShard, hasUnit } from '../../src/campaign/shard.js';
import { RequestError } from '../../src/request-error.js';

const auto = { shard: 'auto' };

describe('which shard this is', () => {
  const said: readonly (readonly [what: string, environment: Environment, shard: string])[] = [
    ['Kubernetes', { JOB_COMPLETION_INDEX: '0', FLASHPROOF_SHARDS: '3' }, '1/3'],
    ['the last pod', { JOB_COMPLETION_INDEX: '2', FLASHPROOF_SHARDS: '3' }, '3/3'],
    [
      'Slurm from 1',
      { SLURM_ARRAY_TASK_ID: '4', SLURM_ARRAY_TASK_MIN: '1', SLURM_ARRAY_TASK_COUNT: '4' },
      '4/4',
    ],
    [
      'Slurm from 0',
      { SLURM_ARRAY_TASK_ID: '0', SLURM_ARRAY_TASK_MIN: '0', SLURM_ARRAY_TASK_COUNT: '4' },
      '1/4',
    ],
    [
      'Slurm with --array=10-18:4',
      {
        SLURM_ARRAY_TASK_ID: '14',
        SLURM_ARRAY_TASK_MIN: '10',
        SLURM_ARRAY_TASK_MAX: '18',
        SLURM_ARRAY_TASK_STEP: '4',
        SLURM_ARRAY_TASK_COUNT: '3',
      },
      '2/3',
    ],
    ['GitLab', { CI_NODE_INDEX: '2', CI_NODE_TOTAL: '5' }, '2/5'],
    ['CircleCI', { CIRCLE_NODE_INDEX: '0', CIRCLE_NODE_TOTAL: '2' }, '1/2'],
    ['one process', { CI_NODE_INDEX: '1', CI_NODE_TOTAL: '1', FLASHPROOF_SHARDS: '' }, '1/1'],
  ];
  it.each(said)('is what %s says', (_, environment, shard) => {
    const [index, count] = shard.split('/').map(Number);
    expect(resolveShard(auto, environment)).toEqual({ index, count });
  });

  it('is nothing that anybody says unasked, and a notice tells so', () => {
    const environment = { CI_NODE_INDEX: '2', CI_NODE_TOTAL: '5' };
    expect(resolveShard({}, environment)).toBeNull();
    expect(undividedNotice(environment)).toMatch(
      /^CI_NODE_INDEX is set, by GitLab, .*--shard auto/,
    );
    expect(undividedNotice({ CI_NODE_INDEX: '1', CI_NODE_TOTAL: '1' })).toBeNull();
    expect(undividedNotice({})).toBeNull();
  });

  it('is asked of the environment by a count alone', () => {
    const environment = { JOB_COMPLETION_INDEX: '1' };
    expect(resolveShard({ shardCount: '4' }, environment)).toEqual({ index: 2, count: 4 });
    const asked = { ...environment, FLASHPROOF_SHARDS: '3' };
    expect(resolveShard({}, asked)).toEqual({ index: 2, count: 3 });
    expect(resolveShard({ shardCount: '4' }, asked)).toEqual({ index: 2, count: 4 });
  });

  it('is what the flag says, whatever the environment does', () => {
    const environment = { CI_NODE_INDEX: 'x', JOB_COMPLETION_INDEX: '7', FLASHPROOF_SHARDS: '2' };
    expect(resolveShard({ shard: '1/3' }, environment)).toEqual({ index: 1, count: 3 });
  });

  const wrong: readonly (readonly [
    request: Parameters<typeof resolveShard>[0],
    environment: Environment,
    message: RegExp,
  ])[] = [
    ...['', '3', '0/2', '3/2', '1/0', '-1/2', '1/2/3', '1.5/2', '1/1000000'].map(
      (shard) => [{ shard }, {}, /^--shard is .*; give index\/count/] as const,
    ),
    [{ shard: '1/3', shardCount: '4' }, {}, /^--shard is 1\/3, but --shard-count is 4/],
    [{ shardCount: 'x' }, {}, /^--shard-count is "x"; give a whole number/],
    [{}, { FLASHPROOF_SHARDS: '0' }, /^FLASHPROOF_SHARDS is "0"; give a whole number/],
    [auto, {}, /^the environment does not say which shard this is; set JOB_COMPLETION_INDEX, or/],
    [{ shardCount: '3' }, {}, /^the environment does not say which shard/],
    [auto, { JOB_COMPLETION_INDEX: '0' }, /but not of how many; give --shard-count, or set FLASH/],
    [
      auto,
      { JOB_COMPLETION_INDEX: '3', FLASHPROOF_SHARDS: '3' },
      /^JOB_COMPLETION_INDEX is 3, beyond the 3 shards of FLASHPROOF_SHARDS/,
    ],
    [
      auto,
      { CI_NODE_INDEX: '1', CI_NODE_TOTAL: '3', FLASHPROOF_SHARDS: '4' },
      /^FLASHPROOF_SHARDS is 4, but CI_NODE_TOTAL is 3; correct one/,
    ],
    [
      { shard: 'auto', shardCount: '4' },
      { CIRCLE_NODE_INDEX: '1', CIRCLE_NODE_TOTAL: '3' },
      /^--shard-count is 4, but CIRCLE_NODE_TOTAL is 3/,
    ],
    [
      auto,
      { CI_NODE_INDEX: '1', CI_NODE_TOTAL: '3', CIRCLE_NODE_INDEX: '0', CIRCLE_NODE_TOTAL: '3' },
      /^CI_NODE_INDEX and CIRCLE_NODE_INDEX both say which shard/,
    ],
    [
      auto,
      { CI_NODE_INDEX: '4', CI_NODE_TOTAL: '3' },
      /^CI_NODE_INDEX is 4, but CI_NODE_TOTAL is 3/,
    ],
    [auto, { CI_NODE_INDEX: '0', CI_NODE_TOTAL: '3' }, /^CI_NODE_INDEX is 0, of numbers/],
    [auto, { CI_NODE_INDEX: 'a', CI_NODE_TOTAL: '3' }, /^CI_NODE_INDEX is "a", no whole number/],
    [
      auto,
      { SLURM_ARRAY_TASK_ID: '5', SLURM_ARRAY_TASK_COUNT: '3' },
      /^SLURM_ARRAY_TASK_MIN is "", no whole number/,
    ],
    [
      auto,
      {
        // --array=1,5,9: Slurm gives no step that fits.
        SLURM_ARRAY_TASK_ID: '1',
        SLURM_ARRAY_TASK_MIN: '1',
        SLURM_ARRAY_TASK_MAX: '9',
        SLURM_ARRAY_TASK_STEP: '1',
        SLURM_ARRAY_TASK_COUNT: '3',
      },
      /not in even steps/,
    ],
  ];
  it.each(wrong)('%j in %j is refused in one line', (request, environment, message) => {
    const resolve = () => resolveShard(request, environment);
    expect(resolve).toThrow(RequestError);
    expect(resolve).toThrow(message);
    expect(resolve).not.toThrow(/\n/);
  });
});

describe('units of shards', () => {
  it('fall to one shard each, as many to each but for one', () => {
    fc.assert(
      fc.property(fc.nat(500), fc.integer({ min: 1, max: 40 }), (units, count) => {
        const positions = Array.from({ length: units }, (_, i) => i);
        const shares = Array.from({ length: count }, (_, i) =>
          positions.filter((position) => hasUnit({ index: i + 1, count }, position)),
        );
        expect(shares.flat().sort((a, b) => a - b)).toEqual(positions);
        const sizes = shares.map(({ length }) => length);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
        const counted = countByShard(positions, count);
        expect(sizes.map((_, i) => counted.get(i + 1) ?? 0)).toEqual(sizes);
      }),
    );
  });
});
