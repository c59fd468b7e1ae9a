import { Command } from 'commander';
import { vi } from 'vitest';
import { addCheckCommand } from '../../src/cli/check.js';

/** What a run of `flashproof check` printed, and its exit status. */
export interface CheckRun {
  readonly status: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs `flashproof check` in this process, so that no build is needed.
 * @throws RequestError as the command does, which main.ts turns into exit status 2
 */
export async function runCheckCommand(...args: readonly string[]): Promise<CheckRun> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  const program = new Command('flashproof').exitOverride();
  addCheckCommand(program);
  const before = process.exitCode;
  try {
    await program.parseAsync(['check', ...args], { from: 'user' });
    return { status: process.exitCode, ...written };
  } finally {
    process.exitCode = before;
    for (const spy of spies) spy.mockRestore();
  }
}
