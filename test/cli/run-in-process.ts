import { Command, CommanderError } from 'commander';
import { vi } from 'vitest';
import type { CommandContext } from '../../src/cli/options/command-rows.js';
import { addCommands } from '../../src/cli/program.js';
import { RequestError } from '../../src/request-error.js';

/** What a command printed, and its exit status. */
export interface CommandRun {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run, or what it was refused with, and what it printed until then. */
type Attempt = CommandRun | { readonly refused: Error; readonly stdout: string };

async function attempt(args: readonly string[], context: CommandContext = {}): Promise<Attempt> {
  const written = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    }),
  );
  const program = new Command('flashproof').exitOverride().configureOutput({ writeErr: () => {} });
  addCommands(program, context);
  program.commands.forEach((command) => command.exitOverride());
  const before = process.exitCode;
  process.exitCode = undefined;
  try {
    // Worker threads run from dist only.
    const own = args[0] === 'check' && !args.includes('--threads') ? ['--threads', '1'] : [];
    await program.parseAsync([...args, ...own], { from: 'user' });
    return { status: Number(process.exitCode ?? 0), ...written };
  } catch (error) {
    if (error instanceof RequestError || error instanceof CommanderError)
      return { refused: error, stdout: written.stdout };
    throw error;
  } finally {
    process.exitCode = before;
    for (const spy of spies) spy.mockRestore();
  }
}

/**
 * Runs the command line in this process, without a build and without the start of another. A kernel
 * model takes `--threads 1`: worker threads run from dist only.
 * @throws RequestError or commander's error, which main.ts turns into one line and exit status 2
 */
export async function runInProcess(...args: readonly string[]): Promise<CommandRun> {
  const run = await attempt(args);
  if ('refused' in run) throw run.refused;
  return run;
}

/** The same with what the commands work with. */
export async function runInProcessWith(
  context: CommandContext,
  ...args: readonly string[]
): Promise<CommandRun> {
  const run = await attempt(args, context);
  if ('refused' in run) throw run.refused;
  return run;
}

/**
 * The message of a request that is refused: what main.ts prints.
 * @throws Error when the request is carried out, or printed something before it was refused
 */
export async function refusal(...args: readonly string[]): Promise<string> {
  const run = await attempt(args);
  if (!('refused' in run) || run.stdout !== '')
    throw new Error(`flashproof ${args.join(' ')} is not refused; it printed:\n${run.stdout}`);
  return run.refused.message;
}
