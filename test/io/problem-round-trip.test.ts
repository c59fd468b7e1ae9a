import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  openTensorFile,
  problemMetadata,
  readProblem,
  writeProblem,
  type ProblemSettings,
} from '../../src/io/index.js';
import { writeNpy } from './write-npy.js';
import { writeNpz } from './write-npz.js';
import { posedTensors, storedOf, storeProblem, type Problem } from '../../src/problem/index.js';
import { batchProblems, packedProblems, plainProblem, plainTensors } from './problem-forms.js';
import { storedForms } from '../problem/stored-forms.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

async function reading(path: string, settings: ProblemSettings = {}): Promise<Problem> {
  // numpy has no name for e4m3.
  const formats = path.endsWith('.safetensors')
    ? {}
    : ({ q: 'e4m3', k: 'e4m3', v: 'e4m3' } as const);
  const file = await openTensorFile(path).catch(() => openTensorFile(path, { formats }));
  try {
    return await readProblem(file, settings);
  } finally {
    await file.close();
  }
}

/** Forms of a problem with packed sequences. */
function formsOf({ sequences = [], k, v }: Problem) {
  return storedForms(sequences.length, String(k.shape) === String(v.shape));
}

/** Each container: how a problem is written into it, so that its metadata is read too. */
const containers: Readonly<Record<string, (problem: Problem) => Promise<() => Promise<Problem>>>> =
  {
    safetensors: async (problem) => {
      const path = folder.at('problem.safetensors');
      await writeProblem(path, problem, {}, { durable: false });
      return () => reading(path);
    },
    'a folder of npy': async (problem) => {
      const path = folder.at('folder');
      rmSync(path, { recursive: true, force: true });
      mkdirSync(path);
      const notes = { ...problemMetadata(problem) } as Record<string, string>;
      for (const [name, tensor] of Object.entries(posedTensors(problem))) {
        await writeNpy(join(path, `${name}.npy`), tensor);
        if ('format' in tensor && tensor.format === 'e4m3') notes[`format.${name}`] = 'e4m3';
      }
      writeFileSync(join(path, 'metadata.json'), JSON.stringify(notes));
      return () => reading(path);
    },
  };

describe('a problem', () => {
  for (const [name, write] of Object.entries(containers)) {
    it(`of batches comes back the same from ${name}`, async () => {
      await fc.assert(
        fc.asyncProperty(batchProblems, async (problem) => {
          const read = await write(problem);
          expect(plainProblem(await read())).toEqual(plainProblem(problem));
        }),
        { numRuns: name === 'safetensors' ? 40 : 5 },
      );
    });

    it(`of packed sequences comes back the same from ${name}, in any form, whatever is unused`, async () => {
      const posed = packedProblems.chain((problem) =>
        fc
          .tuple(formsOf(problem), fc.constantFrom(0, NaN, Infinity, 1e30))
          .map(([form, fill]) => storeProblem(problem, form, fill)),
      );
      await fc.assert(
        fc.asyncProperty(posed, async (problem) => {
          const read = await write(problem);
          expect(plainProblem(await read())).toEqual(plainProblem(problem));
        }),
        { numRuns: name === 'safetensors' ? 60 : 5 },
      );
    });
  }

  it('of packed sequences keeps its form, and what is unused in it, where that is asked for', async () => {
    const posed = packedProblems.chain((problem) =>
      formsOf(problem).map((form) => storeProblem(problem, form, NaN)),
    );
    await fc.assert(
      fc.asyncProperty(posed, async (problem) => {
        const path = folder.at('kept.safetensors');
        await writeProblem(path, problem, {}, { durable: false });
        const read = await reading(path, { keepsPosed: true });
        expect(plainProblem(read)).toEqual(plainProblem(problem));
        const stored = storedOf(read);
        expect(stored?.queries).toEqual(problem.stored.queries);
        expect(stored?.keys).toEqual(problem.stored.keys);
        expect(plainTensors(stored?.tensors ?? {})).toEqual(plainTensors(problem.stored.tensors));
      }),
      { numRuns: 20 },
    );
  });

  it('comes back from npz, which has no place for settings, with its tensors', async () => {
    await fc.assert(
      fc.asyncProperty(batchProblems, async (problem) => {
        if (problem.q.format === 'e4m3') return;
        const path = folder.at('problem.npz');
        await writeNpz(path, posedTensors(problem));
        const { scale, causal, window, softcap, prefix, blockMask, dropout, sink } = problem;
        const read = await reading(path, {
          scale,
          causal,
          window,
          softcap,
          prefix,
          blockQ: blockMask?.blockQueries,
          blockK: blockMask?.blockKeys,
          dropoutP: dropout?.probability,
          lseSink: sink?.inLse,
        });
        expect(plainProblem(read)).toEqual(plainProblem(problem));
      }),
      { numRuns: 20 },
    );
  });
});
