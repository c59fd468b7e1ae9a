import { findingWeight } from '../../../src/machine/index.js';
import { runLaunch, type LaunchRun } from '../../../src/ptx/run/index.js';
import type { Launch } from '../../../src/ptx/launch/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { launchOf, tensorOf } from '../launch/launches.js';

/** Threads of a CTA. */
const threads = 64;

/** What a body runs with, besides its text. */
export interface BodyOptions {
  readonly ctas?: number;
  readonly cluster?: number;
  readonly target?: string;
  /** What stands before the body: variables and further registers. */
  readonly declarations?: string;
  /** The contents of `in`, and of `out` before the kernel starts. */
  readonly input?: Uint8Array;
  readonly output?: Uint8Array;
  /** Performance directives of the kernel. */
  readonly directives?: string;
  /** Further parameters, as the text of a list that begins with a comma. */
  readonly parameters?: string;
  /** Members of the launch file that differ. */
  readonly extra?: Record<string, unknown>;
}

/** What came of a body. */
interface BodyRun {
  readonly result: LaunchRun;
  /** The bytes of `out`, aligned to 16. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** One word of `out` for each thread. */
  readonly words: number[];
  /** The kinds of what was found, hints left out. */
  readonly kinds: string[];
}

/** The text of a kernel with a body, and a launch of it. */
export interface BodyLaunch {
  readonly ptx: string;
  readonly launch: Launch;
}

/**
 * The launch of the body of a kernel: %rd0 is `out`, %rd1 the word of the thread there, %rd2 is `in`, %r0 the thread, %r1 the
 * CTA, %p0 holds for thread 0; 64 threads a CTA.
 */
export async function launchBody(
  body: string,
  {
    ctas = 1,
    cluster = 1,
    target = 'sm_90a',
    declarations = '',
    parameters = '',
    directives = '',
    ...rest
  }: BodyOptions = {},
): Promise<BodyLaunch> {
  const ptx = `.version 8.8
.target ${target}
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in${parameters}) ${directives}
{
  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<16>; .reg .b128 %q<4>;
  ${declarations}
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd2, [in];
  mad.lo.s32 %r2, %r1, ${threads}, %r0;
  mad.wide.u32 %rd1, %r2, 4, %rd0;
  setp.eq.u32 %p0, %r0, 0;
${body}
  ret;
}
`;
  const {
    input = new Uint8Array(4096),
    output = new Uint8Array(4 * threads * ctas),
    extra = {},
  } = rest;
  const file = {
    grid: [ctas],
    block: [threads],
    cluster: [cluster],
    dynamicSharedBytes: 0,
    parameters: [{ tensor: 'out' }, { tensor: 'in' }],
    ...extra,
  };
  const tensors = [
    { ...tensorOf('out', output.length), bytes: output },
    { ...tensorOf('in', input.length), bytes: input },
  ];
  return { ptx, launch: await launchOf(file, { ptx, tensors }) };
}

/** Runs the body of a kernel, as `launchBody` has it. */
export async function runBody(body: string, options: BodyOptions = {}): Promise<BodyRun> {
  const { ptx, launch } = await launchBody(body, options);
  const { ctas = 1 } = options;
  const result = runLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx' });
  const bytes = result.tensors.get('out')!.slice() as Uint8Array<ArrayBuffer>;
  return {
    result,
    bytes,
    words: [...new Uint32Array(bytes.buffer).subarray(0, threads * ctas)],
    kinds: result.findings
      .filter(({ kind }) => findingWeight(kind) !== 'hint')
      .map(({ kind }) => kind),
  };
}
