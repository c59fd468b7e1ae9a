import { InvalidArgumentError, type Command } from 'commander';
import type { MemoryModelName } from '../machine/index.js';
import { RequestError } from '../request-error.js';

/** The options of the emulated machine as commander hands them over. */
export interface MachineOptions {
  readonly machine?: boolean;
  readonly ctas?: 1 | 2;
  readonly clusters?: number;
  readonly schedule?: string;
  readonly races: boolean;
  readonly model?: string;
  readonly isaFences?: boolean;
  readonly mutant?: string;
  readonly trace?: string;
}

/** The names alone: to import the models would load the machine at the start of every command. */
const modelNames = {
  practice: true,
  ptx: true,
  'ptx-9.2': true,
  pipe: true,
} as const satisfies Readonly<Record<MemoryModelName, true>>;

function ctaCount(text: string): 1 | 2 {
  if (text !== '1' && text !== '2') throw new InvalidArgumentError('give 1 or 2.');
  return text === '1' ? 1 : 2;
}

function clusterCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > 0xffff)
    throw new InvalidArgumentError('give a whole number from 1 to 65535.');
  return count;
}

/** Adds the options of the emulated machine. */
export function addMachineOptions(command: Command): Command {
  return command
    .option('--machine', 'run it on an emulated Blackwell: warps, tensor memory, TMA, barriers')
    .option('--ctas <n>', 'CTAs of a cluster, 1 or 2 (default: as the kernel chooses)', ctaCount)
    .option('--clusters <n>', 'clusters that share the tiles (default: one per SM)', clusterCount)
    .option(
      '--schedule <name>',
      'in-order (default), timed, random:<seed>, or an adversarial one (see list --machine)',
    )
    .option('--no-races', 'do not look for races: some three times faster, but proves nothing')
    .option('--model <name>', `memory model: ${Object.keys(modelNames).join(', ')}`)
    .option('--isa-fences', 'with the tcgen05 fences and waits that the PTX ISA asks for')
    .option('--mutant <id>', 'with one mistake in its synchronisation (see list --machine)')
    .option(
      '--trace <file>',
      'write a trace for Perfetto, of the timed schedule unless --schedule is given',
    );
}

/** The options that mean nothing without --machine, by name. */
function machineOnly(options: MachineOptions): Readonly<Record<string, boolean>> {
  const { ctas, clusters, schedule, races, model, isaFences, mutant, trace } = options;
  return {
    '--ctas': ctas !== undefined,
    '--clusters': clusters !== undefined,
    '--schedule': schedule !== undefined,
    '--no-races': !races,
    '--model': model !== undefined,
    '--isa-fences': isaFences === true,
    '--mutant': mutant !== undefined,
    '--trace': trace !== undefined,
  };
}

/** @throws RequestError for an option of the machine without --machine */
export function checkMachineOptions(options: MachineOptions): void {
  if (options.machine === true) return;
  const given = Object.entries(machineOnly(options)).find(([, isGiven]) => isGiven)?.[0];
  if (given !== undefined)
    throw new RequestError(`${given} is about the emulated machine; add --machine`);
}
