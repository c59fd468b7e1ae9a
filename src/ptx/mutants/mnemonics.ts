import { type MutatedInstruction, mutatedInstructions } from './mutated-instructions.js';

/** The state spaces that other threads do not see. */
const unseenSpaces = new Set(['local', 'const', 'param', 'param::entry']);

/** The names with which accesses to memory and operations of tensor cores begin: an order may be about these. */
const accessNames = [
  ...[
    'ld',
    'ldu',
    'st',
    'atom',
    'red',
    'ldmatrix',
    'stmatrix',
    'st.async',
    'red.async',
    'multimem',
  ],
  ...['cp.async', 'cp.reduce', 'wgmma.mma_async', 'mbarrier.init', 'mbarrier.inval'],
  ...['tcgen05.mma', 'tcgen05.ld', 'tcgen05.st', 'tcgen05.cp', 'tcgen05.shift', 'tcgen05.alloc'],
  'tcgen05.dealloc',
];

/** Whether a mnemonic begins with a name, modifier by modifier. */
function beginsWith(mnemonic: string, name: string): boolean {
  return mnemonic === name || mnemonic.startsWith(`${name}.`);
}

/** The row with the longest name that a mnemonic begins with; null where there is none. */
export function mutatedInstruction(mnemonic: string): MutatedInstruction | null {
  let found: MutatedInstruction | null = null;
  for (const row of mutatedInstructions)
    if (beginsWith(mnemonic, row.name) && row.name.length > (found?.name.length ?? 0)) found = row;
  return found;
}

/** The modifiers of a mnemonic. */
export function modifiersOf(mnemonic: string): readonly string[] {
  return mnemonic.split('.').slice(1);
}

/**
 * Whether an instruction is an access to memory that other threads see, or an operation of the tensor core or of TMA.
 */
export function isAccess(mnemonic: string): boolean {
  if (!accessNames.some((name) => beginsWith(mnemonic, name))) return false;
  const modifiers = modifiersOf(mnemonic);
  if (modifiers.some((modifier) => modifier === 'prefetch' || unseenSpaces.has(modifier)))
    return false;
  const row = mutatedInstruction(mnemonic);
  return row === null || row.moves.length === 0;
}
