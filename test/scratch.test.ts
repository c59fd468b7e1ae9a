import { readFileSync, readdirSync } from 'node:fs';
import { it } from 'vitest';
import { attentionOracle, gradientOracle } from '../oracles/index.js';
import { decodeTensor, type FormatName, type Tensor } from '../src/formats/index.js';
import type { Problem } from '../src/problem/index.js';
import { anyGradientPremises, createGradientBounds, type GradientBound } from '../src/audit/gradients/bounds/index.js';

const names: Record<string, FormatName> = { BF16: 'bf16', F16: 'fp16', F32: 'fp32' };
function read(path: string) {
  const b = readFileSync(path);
  const n = Number(b.readBigUInt64LE(0));
  const h = JSON.parse(b.subarray(8, 8 + n).toString()) as Record<string, any>;
  const meta = JSON.parse(h.__metadata__.meta);
  delete h.__metadata__;
  const t: Record<string, any> = {};
  for (const [k, v] of Object.entries(h)) {
    const [s, e] = v.data_offsets;
    const raw = new Uint8Array(b.subarray(8 + n + s, 8 + n + e)).buffer;
    const shape = v.shape.length === 3 ? [1, ...v.shape] : v.shape;
    t[k] = v.dtype === 'BOOL' ? { shape: v.shape, data: new Uint8Array(raw) }
      : v.dtype === 'I32' ? new Int32Array(raw)
      : { format: names[v.dtype], shape, data: v.dtype === 'F32' ? new Float32Array(raw) : new Uint16Array(raw) };
  }
  return { t, meta };
}
const perm = (x: Tensor): Tensor => {
  // [1, total, heads, d] -> [1, heads, total, d]
  const [, n, h, d] = x.shape as number[];
  const out = new (x.data.constructor as any)(x.data.length);
  for (let i = 0; i < n; i++) for (let a = 0; a < h; a++) for (let c = 0; c < d; c++) out[(a * n + i) * d + c] = (x.data as any)[(i * h + a) * d + c];
  return { format: x.format, shape: [1, h, n, d], data: out };
};
const G = '/work/shared/captures/gradients/';
const only = process.env.ONLY;
for (const file of readdirSync(G).sort()) {
  if (only && !file.includes(only)) continue;
  it(file, { timeout: 600000 }, () => {
    const { t, meta } = read(G + file);
    if (t.cu_seqlens) for (const k of Object.keys(t)) if (k !== 'cu_seqlens' && t[k].shape) t[k] = perm(t[k]);
    let problem: Problem = { q: t.q, k: t.k, v: t.v, scale: meta.scale, causal: !!meta.causal, window: null, softcap: meta.softcap ?? null };
    const n = t.q.shape[2];
    if (meta.window) problem = { ...problem, window: { left: meta.window[0], right: meta.window[1] } };
    if (meta.prefix) problem = { ...problem, causal: true, prefix: meta.prefix };
    if (meta.document) { const s = { shape: [n], data: Int32Array.from({ length: n }, (_, i) => Math.floor(i / meta.document)) }; problem = { ...problem, causal: true, segments: { queries: s, keys: s } }; }
    if (t.mask) problem = { ...problem, mask: t.mask };
    if (t.bias) problem = { ...problem, bias: t.bias };
    if (meta.alibi) problem = { ...problem, alibiSlopes: { format: 'fp32', shape: [4], data: Float32Array.from([0, 1, 2, 3], (h) => 2 ** (-2 * (h + 1))) } };
    if (t.cu_seqlens) { const cu = t.cu_seqlens as Int32Array; problem = { ...problem, sequences: Array.from({ length: cu.length - 1 }, (_, i) => ({ firstQuery: cu[i], queries: cu[i + 1] - cu[i], firstKey: cu[i], keys: cu[i + 1] - cu[i] })) }; }
    const kernels = Object.keys(t).filter((k) => k.endsWith('.dq')).map((k) => k.slice(0, -3));
    const reference = attentionOracle(problem);
    const groups = [...gradientOracle(problem, t.do)];
    for (const kernel of kernels) for (const delta of ['any', kernel.includes('math') ? 'weights' : 'stored-output'] as const) {
      const premises = { ...anyGradientPremises(problem, t[kernel + '.dq'].format), delta };
      const lse = t[kernel + '.lse'];
      const start = performance.now();
      const bound = createGradientBounds({ problem, dout: t.do, reference, premises, given: { out: t[kernel + '.out'] ?? null, lse: lse ? { ...lse, shape: lse.shape } : null } });
      const stat: Record<string, { mt: number; me: number; e: number; d: number; max: number; n: number; use: number[]; sys: number[] }> = {};
      const measure = (name: string, b: GradientBound, exact: Float64Array, out: Float64Array) => {
        const s = (stat[name] ??= { mt: 0, me: 0, e: 0, d: 0, max: 0, n: 0, use: [], sys: [] });
        exact.forEach((x, i) => {
          const e = Math.abs(out[i] - x - b.shift[i]);
          s.e += (e / (b.deviation[i]||1e-300)) ** 2; s.n++;
          s.max = Math.max(s.max, e / b.total[i]);
          if (!(e <= b.total[i])) s.d++;
          s.mt = Math.max(s.mt, b.total[i]); s.me = Math.max(s.me, e);
          if (e > 0) s.use.push(b.total[i] / e);
          s.sys.push(b.systematic[i] / b.deviation[i]);
        });
      };
      const q = decodeTensor(t[kernel + '.dq']), k = decodeTensor(t[kernel + '.dk']), v = decodeTensor(t[kernel + '.dv']);
      let time = 0;
      for (const group of groups) {
        const from = performance.now();
        const found = bound(group);
        time += performance.now() - from;
        found.heads.forEach((h, i) => { const x = group.heads[i].dq!.values; measure('dq', h.dq, x, q.subarray(h.head * x.length, (h.head + 1) * x.length)); });
        const kx = group.dk!.values, vx = group.dv!.values;
        measure('dk', found.dk!, kx, k.subarray(group.kvHead * kx.length, (group.kvHead + 1) * kx.length));
        measure('dv', found.dv!, vx, v.subarray(group.kvHead * vx.length, (group.kvHead + 1) * vx.length));
      }
      void start;
      const med = (x: number[]) => Float64Array.from(x).sort()[x.length >> 1];
      console.log(file.slice(0, 20).padEnd(20), kernel.padEnd(16), delta.padEnd(14), Object.entries(stat).map(([name, s]) => `${name} out ${s.d} of ${s.n} ratio ${(s.mt / s.me).toFixed(1)} max ${s.max.toFixed(2)} rms ${Math.sqrt(s.e / s.n).toFixed(2)} med ${med(s.use)?.toFixed(1)} sys/dev ${med(s.sys).toFixed(2)}`).join(' | '), `${time.toFixed(0)} ms`);
    }
  });
}
