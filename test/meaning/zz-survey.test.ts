import { it } from 'vitest';
import { runLaunch } from '../../src/ptx/run/index.js';
import { createRecorder, valueInStore } from '../../src/meaning/record/index.js';
import { valueFormat } from '../../src/meaning/trace/index.js';
import { RealDomain } from '../../src/meaning/domains/index.js';
import { capturedKernels } from '../fixtures/captured-ptx.js';
import { openCaptured } from '../ptx/run/captured-launch.js';
import { appendFileSync } from 'node:fs';

const fmt: Record<string, string> = {
  BF16: 'bf16',
  F16: 'f16',
  F32: 'f32',
  F64: 'f64',
  I8: 's8',
  U8: 'u8',
  I32: 's32',
  I64: 's64',
  F8_E4M3: 'e4m3',
  F8_E5M2: 'e5m2',
};
const over: Record<string, string> = JSON.parse(process.env.OVER ?? '{}');
const plainOnly = /ids|kinds|positions|flags|locks/;
const log = (...a: unknown[]) =>
  appendFileSync(
    '/tmp/trace36/survey.txt',
    a.map((x) => (typeof x === 'string' ? x : JSON.stringify(x))).join(' ') + '\n',
  );
for (const { name } of capturedKernels.filter((k) =>
  new RegExp(process.env.WHICH ?? '.').test(k.name),
))
  it(
    name,
    async () => {
      const { module, launch, tensors, options } = await openCaptured(name);
      const outputs = launch.outputs.map((o) => o.name);
      const inputs = launch.tensors.flatMap(({ name: tensor, dtype }) => {
        const f = over[tensor] ?? fmt[dtype];
        return outputs.includes(tensor) ||
          f === undefined ||
          plainOnly.test(tensor) ||
          valueFormat(f) === null
          ? []
          : [{ tensor, format: valueFormat(f)! }];
      });
      const t0 = performance.now();
      const plain = runLaunch(module, launch, options);
      const t1 = performance.now();
      const recorder = createRecorder(inputs);
      const run = runLaunch(module, launch, { ...options, tracer: recorder.tracer });
      const t2 = performance.now();
      const real = new RealDomain(recorder.trace);
      real.extend();
      const t3 = performance.now();
      const same =
        JSON.stringify(run.findings) === JSON.stringify(plain.findings) &&
        run.isComplete === plain.isComplete &&
        [...plain.tensors].every(([n, b]) => Buffer.compare(b, run.tensors.get(n)!) === 0);
      log(
        '##',
        name,
        same ? '' : 'DIFFERS',
        'plain',
        Math.round(t1 - t0),
        'traced',
        Math.round(t2 - t1),
        'real',
        Math.round(t3 - t2),
        'values',
        recorder.trace.count,
        'products',
        recorder.trace.products.length,
      );
      log(
        '  lost',
        [...recorder.losses.lost].slice(0, 40),
        '\n  decided',
        [...recorder.losses.decided].slice(0, 12),
      );
      for (const out of outputs) {
        const store = recorder.stores.get(out)!;
        const dtype = tensors.get(out)!.dtype;
        const f = valueFormat(fmt[dtype] ?? 'f32')!;
        const c = { none: 0, lost: 0, decided: 0, value: 0 };
        let largest = 0,
          worst = 0,
          at = -1;
        const nans: number[] = [];
        const byOp = new Map<string, number>();
        for (let i = 0; i < store.bytes.length / f.bytes; i++) {
          const v = valueInStore(recorder.trace, store, i * f.bytes, f.bytes);
          if (v === 0) c.none++;
          else if (v === 1) c.lost++;
          else if (v === 2) c.decided++;
          else {
            c.value++;
            const n = recorder.trace.numberOf(v);
            if (Number.isFinite(n)) largest = Math.max(largest, Math.abs(n));
            const op =
              recorder.trace.operationOf(v).site + ' ' + recorder.trace.operationOf(v).name;
            byOp.set(op, (byOp.get(op) ?? 0) + 1);
            if (Number.isFinite(n) && !Number.isFinite(real.high[v])) nans.push(i);
            else if (Number.isFinite(n)) {
              const d = Math.abs(n - real.high[v]);
              if (d > worst) {
                worst = d;
                at = i;
              }
            }
          }
        }
        const limit =
          f.name === 'bf16' || f.name[0] === 'e'
            ? 2 ** -6
            : f.name === 'f64'
              ? 2 ** -40
              : f.isInteger
                ? 2 ** -9
                : 2 ** -9;
        const bad =
          c.lost > 0 || nans.length > 0 || worst > limit * largest || c.none > 0 || c.decided > 0;
        if (process.env.AT && out === (process.env.OUT ?? out)) {
          const seen = new Set<number>();
          const show = (v: number, depth: number): void => {
            const t = recorder.trace;
            const op = t.operationOf(v);
            if (op.origin === 'constant') {
              log(' '.repeat(depth), 'const', t.numberOf(v));
              return;
            }
            log(
              ' '.repeat(depth),
              `#${v}`,
              op.origin,
              op.name,
              op.site,
              t.numberOf(v),
              real.high[v],
              op.origin === 'scale' ? t.c[v] | 0 : '',
            );
            if (seen.has(v) || op.origin === 'input' || op.origin === 'product' || depth > 60)
              return;
            seen.add(v);
            const n =
              op.origin === 'function'
                ? ({ fma: 3, add: 2, subtract: 2, multiply: 2, divide: 2, copysign: 2 }[
                    op.function as string
                  ] ?? 1)
                : op.origin === 'choice'
                  ? 3
                  : 1;
            [t.a[v], t.b[v], t.c[v]].slice(0, n).forEach((x) => show(x, depth + 1));
          };
          show(valueInStore(recorder.trace, store, Number(process.env.AT) * f.bytes, f.bytes), 0);
        }
        log(
          ' ',
          bad ? '!!' : 'ok',
          out,
          dtype,
          c,
          'worst/largest',
          worst / largest,
          `2^${Math.log2(worst / largest).toFixed(1)}`,
          'at',
          at,
          'nan',
          nans.length,
          nans.slice(0, 3),
          [...byOp].slice(0, 3),
        );
      }
    },
    600000,
  );
