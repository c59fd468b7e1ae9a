import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { readDocument } from './shell-document.js';

interface Step {
  readonly name: string;
  readonly shell?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** What action.yml says, as far as its shell steps need it. */
export const action = parse(readDocument('action.yml')) as {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
};

/** The folders of a runner. */
export interface RunnerFolders {
  /** Where a job's commands run, GITHUB_WORKSPACE. */
  readonly workspace: string;
  /** Where the action's files lie, GITHUB_ACTION_PATH. */
  readonly action: string;
  /** RUNNER_TEMP. */
  readonly temporary: string;
}

/** What a runner's file of `name=value` lines holds, such as GITHUB_OUTPUT. */
export function assignmentsOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line !== '');
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/**
 * Carries a shell step of action.yml out as a runner does: its script as a file for bash with `-eo pipefail`
 * (GitHub's documentation of `shell: bash`), expressions only in its environment, and files for what it hands on, in the temporary
 * folder: `environment` (what it writes is set for later steps), `output` and `summary`.
 * @throws Error for an expression that this runner does not know
 */
export function runStep(
  name: string,
  inputs: Readonly<Record<string, string>>,
  folders: RunnerFolders,
) {
  const { run, shell, env = {} } = action.runs.steps.find((step) => step.name === name)!;
  if (run === undefined || shell !== 'bash') throw new Error(`${name} is no step of bash`);
  const evaluate = (text: string) =>
    text.replaceAll(/\$\{\{ (\S+) \}\}/g, (_, expression: string) => {
      if (expression === 'runner.temp') return folders.temporary;
      const input = expression.replace('inputs.', '');
      if (!(input in action.inputs)) throw new Error(`${name} uses ${expression}`);
      return inputs[input] ?? action.inputs[input].default;
    });
  const file = (what: string) => {
    const path = join(folders.temporary, what);
    if (!existsSync(path)) writeFileSync(path, '');
    return path;
  };
  const script = join(folders.temporary, 'step.sh');
  writeFileSync(script, run);
  const environment = file('environment');
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['--noprofile', '--norc', '-eo', 'pipefail', script],
    {
      cwd: folders.workspace,
      encoding: 'utf8',
      env: {
        ...process.env,
        NO_COLOR: '1',
        GITHUB_ACTIONS: 'true',
        GITHUB_WORKSPACE: folders.workspace,
        GITHUB_ACTION_PATH: folders.action,
        GITHUB_ENV: environment,
        GITHUB_OUTPUT: file('output'),
        GITHUB_STEP_SUMMARY: file('summary'),
        ...assignmentsOf(readFileSync(environment, 'utf8')),
        ...Object.fromEntries(Object.entries(env).map(([key, text]) => [key, evaluate(text)])),
      },
    },
  );
  return { status, stdout, stderr };
}
