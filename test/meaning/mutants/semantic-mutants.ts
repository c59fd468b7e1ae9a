import type { PtxModule } from '../../../src/ptx/syntax/index.js';
import { uniformNumbers } from '../../setup/problems.js';
import { semanticChanges, type Surroundings } from './changes.js';
import { instructionTexts, joined, type InstructionText } from './instruction-text.js';

/** A kernel of which one instruction computes something else. */
export interface SemanticMutant {
  /** A key of `semanticChanges`. */
  readonly kind: string;
  readonly line: number;
  /** The instruction before and after. */
  readonly before: string;
  readonly after: string;
  /** The text of the whole kernel. */
  readonly ptx: string;
}

/** How many instructions before count as near. */
const nearby = 16;

function surroundings(
  all: readonly InstructionText[],
  at: number,
  random: () => number,
): Surroundings {
  const near = all.slice(Math.max(0, at - nearby), at + 1).reverse();
  const names = near.flatMap(({ operands }) => operands.join().match(/%[a-z]+\d+\b/g) ?? []);
  const shuffled = new Set(
    near.flatMap(({ mnemonic, operands }) => (mnemonic.startsWith('shfl') ? [operands[0]] : [])),
  );
  return {
    registersNear: (prefix) => [
      ...new Set(names.filter((name) => name.replace(/\d+$/, '') === prefix)),
    ],
    isShuffled: (register) => shuffled.has(register),
    random,
  };
}

/** A list in an order by chance. */
function shuffled<T>(list: readonly T[], random: () => number): readonly T[] {
  return list
    .map((one) => ({ one, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ one }) => one);
}

/** The members of a list in turn by their group, each group in its own order. */
function inTurnByGroup<T>(list: readonly T[], groupOf: (one: T) => string): readonly T[] {
  const counts = new Map<string, number>();
  return list
    .map((one) => {
      const turn = counts.get(groupOf(one)) ?? 0;
      counts.set(groupOf(one), turn + 1);
      return { one, turn };
    })
    .sort((a, b) => a.turn - b.turn)
    .map(({ one }) => one);
}

/**
 * Mutants of a kernel: of each kind so many, spread over the mnemonics that the kind changes.
 *
 * @param isExecuted whether the launch executes a line
 */
export function semanticMutants(
  { ptx, module }: { readonly ptx: string; readonly module: PtxModule },
  isExecuted: (line: number) => boolean,
  { seed, perKind }: { readonly seed: number; readonly perKind: number },
): readonly SemanticMutant[] {
  const all = instructionTexts(ptx, module);
  return Object.entries(semanticChanges).flatMap(([kind, change], number) => {
    const random = uniformNumbers(seed + 7919 * (number + 1));
    const candidates = shuffled([...all.keys()], random).filter(
      (i) =>
        isExecuted(all[i].line) &&
        change(all[i], { ...surroundings(all, i, random), random: () => 0.25 }) !== null,
    );
    const chosen = inTurnByGroup(candidates, (i) => all[i].mnemonic).slice(0, perKind);
    return chosen.flatMap((i): readonly SemanticMutant[] => {
      const one = all[i];
      const after = change(one, surroundings(all, i, random));
      if (after === null || after === joined(one)) return [];
      const text = `${ptx.slice(0, one.from)}${after}${ptx.slice(one.to)}`;
      return [{ kind, line: one.line, before: joined(one), after, ptx: text }];
    });
  });
}
