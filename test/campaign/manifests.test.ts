import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createProgram } from '../../src/cli/program.js';
import { resolveShard } from '../../src/campaign/index.js';
import { githubWorkflow, gitlabPipeline, indexedJob, job } from './manifest-schemas.js';

const examples = join(import.meta.dirname, '../../examples');
const read = (path: string) => readFileSync(join(examples, path), 'utf8');

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-manifests-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The documents of a YAML file, of which none may have an error or a warning. */
function documents(path: string): unknown[] {
  return parseAllDocuments(read(path), { uniqueKeys: true, strict: true }).map((document) => {
    expect([...document.errors, ...document.warnings]).toEqual([]);
    return document.toJS() as unknown;
  });
}

function expectValid(schema: object, value: unknown): void {
  // Alternatives name members that are described beside them.
  const settings = { allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true };
  const validate = new Ajv2020(settings).compile(schema);
  validate(value);
  expect(validate.errors ?? []).toEqual([]);
}

interface Workflow {
  readonly env: { readonly SHARDS: number };
  readonly jobs: Record<
    string,
    {
      readonly strategy?: { readonly matrix: { readonly shard: readonly number[] } };
      readonly steps: readonly {
        readonly run?: string;
        readonly uses?: string;
        readonly with?: Record<string, string>;
      }[];
    }
  >;
}

interface Pod {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly completions: number;
    readonly maxFailedIndexes: number;
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly name: string;
          readonly command: readonly string[];
          readonly args: readonly string[];
          readonly env?: readonly { readonly name: string; readonly value: string }[];
        }[];
      };
    };
  };
}

describe('the workflow of GitHub', () => {
  const [workflow] = documents('campaign-github/flashproof.yml') as [Workflow];
  const { check, merge } = workflow.jobs;

  it('has the parts that matter, as GitHub takes them', () =>
    expectValid(githubWorkflow, workflow));

  it('has every shard once', () => {
    const { SHARDS } = workflow.env;
    const numbers = Array.from({ length: SHARDS }, (_, i) => i + 1);
    expect(check!.strategy!.matrix.shard).toEqual(numbers);
  });

  it('merges the very files that the shards upload', () => {
    const uploads = check!.steps.filter(({ uses }) => uses?.startsWith('actions/upload-artifact@'));
    const download = merge!.steps.find(({ uses }) =>
      uses?.startsWith('actions/download-artifact@'),
    )!;
    const prefix = download.with!['pattern'].replace('*', '');
    expect(uploads[0].with!['name'].startsWith(prefix)).toBe(true);
    const written = /--json (\S+\.json|\S+ \S+ \S+\.json)/.exec(check!.steps.at(-2)!.run!)![1];
    expect(uploads[0].with!['path']).toContain(written);
    expect(merge!.steps.some(({ run }) => run?.includes('merge part-*.json'))).toBe(true);
  });
});

describe('the jobs of Kubernetes', () => {
  const [claim, campaign] = documents('campaign-kubernetes/campaign.yaml') as [Pod, Pod];
  const [merge] = documents('campaign-kubernetes/merge.yaml') as [Pod];
  const [container] = campaign.spec.template.spec.containers;

  it('have the parts that matter, as Kubernetes takes them', () => {
    expectValid(indexedJob, campaign);
    expectValid(job, merge);
    expect(claim.kind).toBe('PersistentVolumeClaim');
    for (const { spec } of [campaign, merge])
      expect(JSON.stringify(spec)).toContain(`"claimName":"${claim.metadata.name}"`);
  });

  it('give every index a shard of its own', () => {
    const { completions, maxFailedIndexes } = campaign.spec;
    const environment = Object.fromEntries(container!.env!.map(({ name, value }) => [name, value]));
    expect(maxFailedIndexes).toBe(completions);
    for (let index = 0; index < completions; index++)
      expect(
        resolveShard({ shard: 'auto' }, { ...environment, JOB_COMPLETION_INDEX: String(index) }),
      ).toEqual({ index: index + 1, count: completions });
  });

  it('fail an index by the name of its container', () => {
    expect(JSON.stringify(campaign.spec)).toContain(`"containerName":"${container!.name}"`);
  });
});

describe('the pipeline of GitLab', () => {
  it('has the parts that matter, as GitLab takes them', () =>
    expectValid(gitlabPipeline, documents('campaign-gitlab/.gitlab-ci.yml')[0]));
});

describe('the scripts of Slurm', () => {
  it.each(['campaign.sbatch', 'submit.sh'])('%s is read by bash', (name) => {
    const { status, stderr } = spawnSync('bash', ['-n', join(examples, 'campaign-slurm', name)], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  /** Runs a script with commands in place of Slurm's and npm's that print their words. */
  function withStubs(name: string, environment: Record<string, string>): string {
    for (const stub of ['npx', 'sbatch'])
      writeFileSync(join(scratch, stub), '#!/bin/sh\nprintf "%s|" "$@"\necho\n', { mode: 0o755 });
    const path = join(examples, 'campaign-slurm', name);
    const { status, stdout, stderr } = spawnSync('bash', [path], {
      encoding: 'utf8',
      cwd: scratch,
      env: {
        PATH: `${scratch}:${process.env['PATH'] ?? ''}`,
        FLASHPROOF_CAMPAIGN: join(scratch, 'campaign'),
        ...environment,
      },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout;
  }

  it('give every task its shard and a journal of its own', () => {
    const first = withStubs('campaign.sbatch', { SLURM_ARRAY_TASK_ID: '3' });
    expect(first).toMatch(/^flashproof\|check\|--exec\|python3 flashproof_kernel\.py\|/);
    expect(first).toContain(`|--shard|auto|--journal|${join(scratch, 'campaign')}/shard-3.jsonl|`);
    expect(withStubs('campaign.sbatch', { SLURM_ARRAY_TASK_ID: '4' })).toContain('/shard-4.jsonl|');
    const [, from, to] = /--array=(\d+)-(\d+)\n/.exec(read('campaign-slurm/campaign.sbatch'))!;
    const ofTask = (id: string | undefined) =>
      resolveShard(
        { shard: 'auto' },
        {
          SLURM_ARRAY_TASK_ID: id,
          SLURM_ARRAY_TASK_MIN: from,
          SLURM_ARRAY_TASK_MAX: to,
          SLURM_ARRAY_TASK_COUNT: String(Number(to) - Number(from) + 1),
        },
      );
    expect([ofTask(from)!.index, ofTask(to)!.index]).toEqual([1, ofTask(to)!.count]);
  });

  it('end a shard before Slurm does', () => {
    const text = read('campaign-slurm/campaign.sbatch');
    const [, hours, minutes, seconds] = /--time=(\d+):(\d+):(\d+)/.exec(text)!.map(Number);
    const limit = 3600 * hours! + 60 * minutes! + seconds!;
    expect(Number(/--seconds (\d+)/.exec(text)![1])).toBeLessThan(limit);
  });

  it('merge once the array has ended', () => {
    const submitted = withStubs('submit.sh', {});
    expect(submitted).toMatch(/^--dependency=afterany:/);
    expect(submitted).toContain('npx flashproof merge "$FLASHPROOF_CAMPAIGN"/shard-*.jsonl');
  });
});

describe('the commands of all manifests', () => {
  const texts: readonly (readonly [path: string, text: string])[] = [
    ...[
      ...['campaign-github/flashproof.yml', 'campaign-gitlab/.gitlab-ci.yml'],
      ...['campaign-slurm/campaign.sbatch', 'campaign-slurm/submit.sh'],
      ...['campaign-kubernetes/merge.yaml'],
    ].map((path) => [path, read(path)] as const),
    [
      'campaign-kubernetes/campaign.yaml',
      `flashproof ${(documents('campaign-kubernetes/campaign.yaml')[1] as Pod).spec.template.spec.containers[0].args.join(' ')}`,
    ],
  ];

  it.each(texts)('%s has options that flashproof has', (_, text) => {
    const program = createProgram((error) => {
      throw error;
    });
    const [, ...found] = text.split(/flashproof (?=(?:check|merge) )/);
    expect(found.length).toBeGreaterThan(0);
    for (const words of found) {
      const name = words.slice(0, 5);
      // A command ends where the next member or entry begins.
      const [command] = words.split(/\n\s*(?:- |\w+:)/);
      const known = program.commands
        .find((known) => known.name() === name)!
        .options.map(({ long }) => long);
      const used = [...command!.matchAll(/(?<=\s)--[a-z-]+/g)].map(([option]) => option);
      expect(used.filter((option) => !known.includes(option))).toEqual([]);
      expect(used).toContain(name === 'check' ? '--shard' : '--json');
    }
  });
});
