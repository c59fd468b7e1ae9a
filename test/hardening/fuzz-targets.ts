import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  fromUnits,
  joinCheck,
  joinConform,
  joinParts,
  joinProfile,
  readJournal,
  readPart,
} from '../../src/campaign/index.js';
import { readCase } from '../../src/cli/check/saved-case.js';
import { declaredPromises } from '../../src/cli/check/promises.js';
import { parseKernelAnswer } from '../../src/io/live/kernel-answer.js';
import type { CheckCommandOptions } from '../../src/cli/check/options.js';
import { readCapture } from '../../src/conform/capture.js';
import { renderConformance } from '../../src/report/text/index.js';
import { targets as captureTargets } from '../../src/conform/targets.js';
import {
  hashTensorFile,
  openTensorFile,
  readProblem,
  type DeclaredFormats,
} from '../../src/io/index.js';
import { renderProfile } from '../../src/report/text/profile/index.js';
import { renderCheck } from '../../src/report/text/check.js';
import { renderCheckJunit } from '../../src/report/junit/check-junit.js';
import { validateCheckReport } from '../../src/report/validation/index.js';
import { RequestError } from '../../src/request-error.js';
import { hostileCampaign } from './hostile-campaigns.js';
import { hostileNpy, soundNpy } from './hostile-npy.js';
import { hostileSafetensors } from './hostile-safetensors.js';
import {
  hostileAnswer,
  hostileCapture,
  hostileFolderMetadata,
  hostilePromises,
} from './hostile-small-files.js';
import { hostileZip } from './hostile-zip.js';
import type { Random } from './random.js';
import { refusalOnly } from './refusal-fault.js';

/** One hostile input, and what is to be done with it. */
export interface FuzzCase {
  /** Bytes of the input, as it lies on the disk. */
  readonly bytes: number;
  /** The most bytes that one array may be asked for. */
  readonly mostAllocated: number;
  /** Reads it in every way there is. @throws RequestError where it is refused; all else is a finding */
  readonly exercise: () => Promise<void>;
}

/** A reader, with what makes hostile inputs for it. */
export interface FuzzTarget {
  readonly name: string;
  /** How often it is chosen beside the others. */
  readonly weight: number;
  /** Writes an input into an empty folder. */
  readonly make: (folder: string, random: Random) => FuzzCase;
}

/** What any reader may take, whatever the input: chunks, and limits on small files. */
const baseBytes = 1 << 20;

/** The most that deflate can shrink (RFC 1951), which bounds what an archive may ask for. */
const deflateRatio = 1032;

const declarations: readonly DeclaredFormats[] = [
  ...[
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    { q: 'tf32' },
    { q: 'bf16', k: 'e4m3' },
    { nothing: 'fp16' },
  ],
  { q: 'fp99' as 'fp16' },
] as const;

/** Opens a file and reads all that can be read, whole and in part. */
async function readTensors(path: string, formats: DeclaredFormats): Promise<void> {
  const file = await openTensorFile(path, { formats });
  try {
    for (const { name, elements, shape } of file.entries.values()) {
      const tensor = await file.read(name).catch(refusalOnly);
      if (tensor === null) continue;
      if (tensor.data.length !== elements)
        throw new Error(`${name} of shape [${shape.join()}] has ${tensor.data.length} elements`);
      await file.readElements(name, Math.floor(elements / 2), Math.ceil(elements / 4));
      await file.sha256(name);
    }
    await readProblem(file).catch(refusalOnly);
  } finally {
    await file.close();
  }
}

/** Opens and reads a file in every way in which a command does; refused when all of them refuse. */
async function readEverywhere(path: string, formats: DeclaredFormats): Promise<void> {
  await hashTensorFile(path);
  await readCase(path).catch(refusalOnly);
  await readTensors(path, formats);
}

function tensorFileTarget(
  name: string,
  weight: number,
  hostile: (random: Random) => Uint8Array,
  ratio: number,
): FuzzTarget {
  return {
    name,
    weight,
    make: (folder, random) => {
      const content = hostile(random);
      // The ending decides where the content does not: without it a length that is no file's own would
      // keep the file from its reader.
      const own = `a.${name}`;
      const path = join(folder, random.pick([own, own, own, 'dump', 'a.npy', 'a.npz']));
      const formats = random.pick(declarations);
      writeFileSync(path, content);
      return {
        bytes: content.length,
        mostAllocated: baseBytes + ratio * content.length,
        exercise: () => readEverywhere(path, formats),
      };
    },
  };
}

const folderTarget: FuzzTarget = {
  name: 'folder',
  weight: 2,
  make: (parent, random) => {
    const folder = join(parent, 'folder');
    mkdirSync(folder);
    const hostile = random.pick(['q', 'k', 'v', 'metadata', 'none']);
    const files = ['q', 'k', 'v'].map(
      (name) => [`${name}.npy`, name === hostile ? hostileNpy(random) : soundNpy] as const,
    );
    const metadata = hostile === 'metadata' ? hostileFolderMetadata(random) : Buffer.from('{}');
    const all = [...files, ['metadata.json', metadata] as const];
    for (const [name, content] of all) writeFileSync(join(folder, name), content);
    if (random.chance(0.05)) mkdirSync(join(folder, 'x.npy'));
    const bytes = all.reduce((sum, [, content]) => sum + content.length, 0);
    const formats = random.pick(declarations);
    return {
      bytes,
      mostAllocated: baseBytes + bytes,
      exercise: () => readEverywhere(folder, formats),
    };
  },
};

const promisesTarget: FuzzTarget = {
  name: 'promises',
  weight: 1,
  make: (folder, random) => {
    const path = join(folder, 'promises.json');
    const content = hostilePromises(random);
    writeFileSync(path, content);
    const options = { promises: path, runs: '1', seconds: '1', timeout: '1', saveDir: folder };
    return {
      bytes: content.length,
      mostAllocated: baseBytes + content.length,
      exercise: async () => {
        await declaredPromises({}, options satisfies CheckCommandOptions);
      },
    };
  },
};

const answerTarget: FuzzTarget = {
  name: 'answer of --exec',
  weight: 3,
  make: (_, random) => {
    const line = hostileAnswer(random).split('\n')[0];
    return {
      bytes: line.length,
      mostAllocated: baseBytes,
      exercise: async () => {
        const answer = parseKernelAnswer(line, 1);
        if (answer.ok) return;
        // The reason becomes part of a message of one line.
        throw new RequestError(answer.reason);
      },
    };
  },
};

const captureTarget: FuzzTarget = {
  name: 'capture',
  weight: 0.5,
  make: (parent, random) => {
    const folder = join(parent, 'capture');
    mkdirSync(folder);
    const files = hostileCapture(random);
    for (const [name, content] of files) writeFileSync(join(folder, name), content);
    return {
      bytes: files.reduce((sum, [, content]) => sum + content.length, 0),
      // A binade of results, the largest file of pairs.
      mostAllocated: 2 ** 26,
      exercise: async () => {
        await readCapture(folder, captureTargets);
      },
    };
  },
};

/** Makes the report that `flashproof merge` makes, as far as it is checked. */
async function mergeParts(path: string): Promise<void> {
  const joined = joinParts([readPart(path)]);
  const { command } = joined.request;
  await fromUnits(joined, async () => {
    if (command === 'check') {
      const report = joinCheck(joined);
      await validateCheckReport(report);
      renderCheck(report);
      renderCheckJunit(report);
    } else if (command === 'conform') renderConformance(joinConform(joined));
    else renderProfile(await joinProfile(joined));
  });
}

const campaignTarget: FuzzTarget = {
  name: 'journal or part',
  weight: 3,
  make: (folder, random) => {
    const path = join(folder, 'part');
    const content = hostileCampaign(random);
    writeFileSync(path, content);
    return {
      bytes: content.length,
      // What deflate and the arrays of a unit may come to.
      mostAllocated: 2 ** 26,
      exercise: async () => {
        await Promise.resolve()
          .then(() => readJournal(path))
          .catch(refusalOnly);
        await mergeParts(path);
      },
    };
  },
};

/** Every reader of what somebody else wrote. */
export const fuzzTargets: readonly FuzzTarget[] = [
  tensorFileTarget('safetensors', 5, hostileSafetensors, 1),
  tensorFileTarget('npy', 3, hostileNpy, 1),
  tensorFileTarget('npz', 4, hostileZip, deflateRatio),
  ...[folderTarget, promisesTarget, answerTarget, captureTarget, campaignTarget],
];

/** A target by the weights of all. */
export function pickTarget(random: Random, targets: readonly FuzzTarget[]): FuzzTarget {
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  let rest = (random.below(1e6) / 1e6) * total;
  return targets.find(({ weight }) => (rest -= weight) < 0) ?? targets[0];
}

/** Leaves a folder empty. */
export function emptied(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}
