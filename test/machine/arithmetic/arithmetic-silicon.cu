// The source of silicon.ts: runs the machine's arithmetic instructions over the patterns of
// patterns.ts and prints one hash of the results per instruction. With BLACKWELL defined it has those
// on pairs of registers and of three operands instead, most of which need sm_100.
// Build: nvcc -arch=sm_90 -o arithmetic-silicon arithmetic-silicon.cu
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr uint32_t seed = 20261121;
constexpr int patternCount = 1 << 14;

#define STORE(slot) results[(size_t)(slot)*patternCount + i] = d;
#define WORD1(slot, name) \
  asm(name " %0, %1;" \
      : "=r"(d) : "r"(a)); \
  STORE(slot)
#define WORD2(slot, name) \
  asm(name " %0, %1, %2;" \
      : "=r"(d) : "r"(a), "r"(b)); \
  STORE(slot)
#define WORD3(slot, name) \
  asm(name " %0, %1, %2, %3;" \
      : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
  STORE(slot)
#define WORD4(slot, name) \
  asm(name " %0, %1, %2, %3, %4;" \
      : "=r"(d) : "r"(a), "r"(b), "r"(c), "r"(e)); \
  STORE(slot)
#define LOOKUP(slot, table) \
  asm("lop3.b32 %0, %1, %2, %3, " table ";" \
      : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
  STORE(slot)
#define TO_HALF1(slot, name) \
  asm("{.reg .b16 h; " name " h, %1; cvt.u32.u16 %0, h;}" \
      : "=r"(d) : "r"(a)); \
  STORE(slot)
#define TO_HALF2(slot, name) \
  asm("{.reg .b16 h; " name " h, %1, %2; cvt.u32.u16 %0, h;}" \
      : "=r"(d) : "r"(a), "r"(b)); \
  STORE(slot)
#define FROM_HALF1(slot, name) \
  asm("{.reg .b16 h; cvt.u16.u32 h, %1; " name " %0, h;}" \
      : "=r"(d) : "r"(a)); \
  STORE(slot)
#define HALF_TO_HALF1(slot, name) \
  asm("{.reg .b16 h, g; cvt.u16.u32 h, %1; " name " g, h; cvt.u32.u16 %0, g;}" \
      : "=r"(d) : "r"(a)); \
  STORE(slot)
#define COMPARE2(slot, name) \
  asm("{.reg .pred p; " name " p, %1, %2; selp.u32 %0, 1, 0, p;}" \
      : "=r"(d) : "r"(a), "r"(b)); \
  STORE(slot)
#define COMPARE3(slot, name) \
  asm("{.reg .pred p, q; setp.ne.u32 q, %3, 0; " name " p, %1, %2, q; selp.u32 %0, 1, 0, p;}" \
      : "=r"(d) : "r"(a), "r"(b), "r"(c & 1)); \
  STORE(slot)
#define SELECT(slot, name) \
  asm("{.reg .pred q; setp.ne.u32 q, %3, 0; " name " %0, %1, %2, q;}" \
      : "=r"(d) : "r"(a), "r"(b), "r"(c & 1)); \
  STORE(slot)
#define PREDICATE1(slot, name) \
  asm("{.reg .pred p, q; setp.ne.u32 q, %1, 0; " name " p, q; selp.u32 %0, 1, 0, p;}" \
      : "=r"(d) : "r"(a & 1)); \
  STORE(slot)
#define PREDICATE2(slot, name) \
  asm("{.reg .pred p, q, r; setp.ne.u32 q, %1, 0; setp.ne.u32 r, %2, 0; " name " p, q, r; selp.u32 %0, 1, 0, p;}" \
      : "=r"(d) : "r"(a & 1), "r"(b & 1)); \
  STORE(slot)
#define PAIR1(slot, name) \
  asm(name " %0, %1;" \
      : "=l"(w) : "l"(x)); d = (uint32_t)(w ^ (w >> 32)); \
  STORE(slot)
#define PAIR2(slot, name) \
  asm(name " %0, %1, %2;" \
      : "=l"(w) : "l"(x), "l"(y)); d = (uint32_t)(w ^ (w >> 32)); \
  STORE(slot)
#define PAIR3(slot, name) \
  asm(name " %0, %1, %2, %3;" \
      : "=l"(w) : "l"(x), "l"(y), "l"(z)); d = (uint32_t)(w ^ (w >> 32)); \
  STORE(slot)

__global__ void evaluate(const uint32_t *operands, uint32_t *results) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= patternCount) return;
  uint32_t a = operands[4 * i], b = operands[4 * i + 1], c = operands[4 * i + 2], d;
#ifndef BLACKWELL
  uint32_t e = operands[4 * i + 3];
#endif
#ifdef BLACKWELL
  uint64_t w, x = (uint64_t)b << 32 | a, y = (uint64_t)c << 32 | b, z = (uint64_t)a << 32 | c;
  PAIR2(0, "add.f32x2")
  PAIR2(1, "add.ftz.f32x2")
  PAIR2(2, "add.rn.f32x2")
  PAIR2(3, "add.rn.ftz.f32x2")
  PAIR2(4, "add.rz.f32x2")
  PAIR2(5, "add.rz.ftz.f32x2")
  PAIR2(6, "add.rm.f32x2")
  PAIR2(7, "add.rm.ftz.f32x2")
  PAIR2(8, "add.rp.f32x2")
  PAIR2(9, "add.rp.ftz.f32x2")
  PAIR2(10, "sub.f32x2")
  PAIR2(11, "sub.ftz.f32x2")
  PAIR2(12, "sub.rn.f32x2")
  PAIR2(13, "sub.rn.ftz.f32x2")
  PAIR2(14, "sub.rz.f32x2")
  PAIR2(15, "sub.rz.ftz.f32x2")
  PAIR2(16, "sub.rm.f32x2")
  PAIR2(17, "sub.rm.ftz.f32x2")
  PAIR2(18, "sub.rp.f32x2")
  PAIR2(19, "sub.rp.ftz.f32x2")
  PAIR2(20, "mul.f32x2")
  PAIR2(21, "mul.ftz.f32x2")
  PAIR2(22, "mul.rn.f32x2")
  PAIR2(23, "mul.rn.ftz.f32x2")
  PAIR2(24, "mul.rz.f32x2")
  PAIR2(25, "mul.rz.ftz.f32x2")
  PAIR2(26, "mul.rm.f32x2")
  PAIR2(27, "mul.rm.ftz.f32x2")
  PAIR2(28, "mul.rp.f32x2")
  PAIR2(29, "mul.rp.ftz.f32x2")
  PAIR3(30, "fma.rn.f32x2")
  PAIR3(31, "fma.rn.ftz.f32x2")
  PAIR3(32, "fma.rz.f32x2")
  PAIR3(33, "fma.rz.ftz.f32x2")
  PAIR3(34, "fma.rm.f32x2")
  PAIR3(35, "fma.rm.ftz.f32x2")
  PAIR3(36, "fma.rp.f32x2")
  PAIR3(37, "fma.rp.ftz.f32x2")
  WORD3(38, "min.f32")
  WORD3(39, "min.NaN.f32")
  WORD3(40, "min.ftz.f32")
  WORD3(41, "min.ftz.NaN.f32")
  WORD3(42, "max.f32")
  WORD3(43, "max.NaN.f32")
  WORD3(44, "max.ftz.f32")
  WORD3(45, "max.ftz.NaN.f32")
  PAIR1(46, "mov.b64")
  PAIR1(47, "mov.u64")
  PAIR1(48, "mov.s64")
#else
  WORD2(0, "add.f32")
  WORD2(1, "add.ftz.f32")
  WORD2(2, "add.rn.f32")
  WORD2(3, "add.rn.ftz.f32")
  WORD2(4, "add.rz.f32")
  WORD2(5, "add.rz.ftz.f32")
  WORD2(6, "add.rm.f32")
  WORD2(7, "add.rm.ftz.f32")
  WORD2(8, "add.rp.f32")
  WORD2(9, "add.rp.ftz.f32")
  WORD2(10, "sub.f32")
  WORD2(11, "sub.ftz.f32")
  WORD2(12, "sub.rn.f32")
  WORD2(13, "sub.rn.ftz.f32")
  WORD2(14, "sub.rz.f32")
  WORD2(15, "sub.rz.ftz.f32")
  WORD2(16, "sub.rm.f32")
  WORD2(17, "sub.rm.ftz.f32")
  WORD2(18, "sub.rp.f32")
  WORD2(19, "sub.rp.ftz.f32")
  WORD2(20, "mul.f32")
  WORD2(21, "mul.ftz.f32")
  WORD2(22, "mul.rn.f32")
  WORD2(23, "mul.rn.ftz.f32")
  WORD2(24, "mul.rz.f32")
  WORD2(25, "mul.rz.ftz.f32")
  WORD2(26, "mul.rm.f32")
  WORD2(27, "mul.rm.ftz.f32")
  WORD2(28, "mul.rp.f32")
  WORD2(29, "mul.rp.ftz.f32")
  WORD3(30, "fma.rn.f32")
  WORD3(31, "fma.rn.ftz.f32")
  WORD3(32, "fma.rz.f32")
  WORD3(33, "fma.rz.ftz.f32")
  WORD3(34, "fma.rm.f32")
  WORD3(35, "fma.rm.ftz.f32")
  WORD3(36, "fma.rp.f32")
  WORD3(37, "fma.rp.ftz.f32")
  WORD2(38, "min.f32")
  WORD2(39, "min.NaN.f32")
  WORD2(40, "min.ftz.f32")
  WORD2(41, "min.ftz.NaN.f32")
  WORD2(42, "max.f32")
  WORD2(43, "max.NaN.f32")
  WORD2(44, "max.ftz.f32")
  WORD2(45, "max.ftz.NaN.f32")
  WORD1(46, "neg.f32")
  WORD1(47, "neg.ftz.f32")
  WORD1(48, "abs.f32")
  WORD1(49, "abs.ftz.f32")
  WORD1(50, "ex2.approx.ftz.f32")
  WORD1(51, "ex2.approx.f32")
  WORD1(52, "rcp.approx.ftz.f32")
  WORD1(53, "lg2.approx.ftz.f32")
  WORD1(54, "rsqrt.approx.ftz.f32")
  WORD1(55, "tanh.approx.f32")
  HALF_TO_HALF1(56, "ex2.approx.ftz.bf16")
  HALF_TO_HALF1(57, "ex2.approx.f16")
  HALF_TO_HALF1(58, "tanh.approx.bf16")
  HALF_TO_HALF1(59, "tanh.approx.f16")
  WORD2(60, "cvt.rn.bf16x2.f32")
  TO_HALF1(61, "cvt.rn.bf16.f32")
  WORD2(62, "cvt.rz.bf16x2.f32")
  TO_HALF1(63, "cvt.rz.bf16.f32")
  WORD2(64, "cvt.rn.satfinite.bf16x2.f32")
  TO_HALF1(65, "cvt.rn.satfinite.bf16.f32")
  WORD2(66, "cvt.rz.satfinite.bf16x2.f32")
  TO_HALF1(67, "cvt.rz.satfinite.bf16.f32")
  WORD2(68, "cvt.rn.f16x2.f32")
  TO_HALF1(69, "cvt.rn.f16.f32")
  WORD2(70, "cvt.rz.f16x2.f32")
  TO_HALF1(71, "cvt.rz.f16.f32")
  WORD2(72, "cvt.rn.satfinite.f16x2.f32")
  TO_HALF1(73, "cvt.rn.satfinite.f16.f32")
  WORD2(74, "cvt.rz.satfinite.f16x2.f32")
  TO_HALF1(75, "cvt.rz.satfinite.f16.f32")
  TO_HALF2(76, "cvt.rn.satfinite.e4m3x2.f32")
  TO_HALF2(77, "cvt.rn.satfinite.e5m2x2.f32")
  TO_HALF1(78, "cvt.rn.satfinite.e4m3x2.f16x2")
  TO_HALF1(79, "cvt.rn.satfinite.e5m2x2.f16x2")
  FROM_HALF1(80, "cvt.rn.f16x2.e4m3x2")
  FROM_HALF1(81, "cvt.rn.f16x2.e5m2x2")
  FROM_HALF1(82, "cvt.f32.f16")
  FROM_HALF1(83, "cvt.f32.bf16")
  WORD1(84, "cvt.rni.s32.f32")
  WORD1(85, "cvt.rni.u32.f32")
  WORD1(86, "cvt.rni.f32.f32")
  WORD1(87, "cvt.rni.ftz.s32.f32")
  WORD1(88, "cvt.rni.ftz.u32.f32")
  WORD1(89, "cvt.rni.ftz.f32.f32")
  WORD1(90, "cvt.rzi.s32.f32")
  WORD1(91, "cvt.rzi.u32.f32")
  WORD1(92, "cvt.rzi.f32.f32")
  WORD1(93, "cvt.rzi.ftz.s32.f32")
  WORD1(94, "cvt.rzi.ftz.u32.f32")
  WORD1(95, "cvt.rzi.ftz.f32.f32")
  WORD1(96, "cvt.rmi.s32.f32")
  WORD1(97, "cvt.rmi.u32.f32")
  WORD1(98, "cvt.rmi.f32.f32")
  WORD1(99, "cvt.rmi.ftz.s32.f32")
  WORD1(100, "cvt.rmi.ftz.u32.f32")
  WORD1(101, "cvt.rmi.ftz.f32.f32")
  WORD1(102, "cvt.rpi.s32.f32")
  WORD1(103, "cvt.rpi.u32.f32")
  WORD1(104, "cvt.rpi.f32.f32")
  WORD1(105, "cvt.rpi.ftz.s32.f32")
  WORD1(106, "cvt.rpi.ftz.u32.f32")
  WORD1(107, "cvt.rpi.ftz.f32.f32")
  WORD1(108, "cvt.rn.f32.s32")
  WORD1(109, "cvt.rn.f32.u32")
  WORD1(110, "cvt.rz.f32.s32")
  WORD1(111, "cvt.rz.f32.u32")
  WORD1(112, "cvt.rm.f32.s32")
  WORD1(113, "cvt.rm.f32.u32")
  WORD1(114, "cvt.rp.f32.s32")
  WORD1(115, "cvt.rp.f32.u32")
  WORD2(116, "add.s32")
  WORD2(117, "sub.s32")
  WORD2(118, "mul.lo.s32")
  WORD3(119, "mad.lo.s32")
  WORD2(120, "add.u32")
  WORD2(121, "sub.u32")
  WORD2(122, "mul.lo.u32")
  WORD3(123, "mad.lo.u32")
  WORD2(124, "mul.hi.u32")
  WORD3(125, "mad.hi.u32")
  WORD2(126, "min.u32")
  WORD2(127, "max.u32")
  WORD2(128, "mul.hi.s32")
  WORD3(129, "mad.hi.s32")
  WORD2(130, "min.s32")
  WORD2(131, "max.s32")
  WORD1(132, "neg.s32")
  WORD1(133, "abs.s32")
  WORD1(134, "mov.b32")
  WORD1(135, "mov.u32")
  WORD1(136, "mov.s32")
  WORD1(137, "mov.f32")
  PREDICATE1(138, "mov.pred")
  SELECT(139, "selp.b32")
  SELECT(140, "selp.u32")
  SELECT(141, "selp.s32")
  SELECT(142, "selp.f32")
  WORD2(143, "shl.b32")
  WORD2(144, "shr.b32")
  WORD2(145, "shr.u32")
  WORD2(146, "shr.s32")
  WORD3(147, "shf.l.wrap.b32")
  WORD3(148, "shf.r.wrap.b32")
  WORD3(149, "shf.l.clamp.b32")
  WORD3(150, "shf.r.clamp.b32")
  WORD2(151, "and.b32")
  WORD2(152, "or.b32")
  WORD2(153, "xor.b32")
  WORD1(154, "not.b32")
  PREDICATE2(155, "and.pred")
  PREDICATE2(156, "or.pred")
  PREDICATE2(157, "xor.pred")
  PREDICATE1(158, "not.pred")
  LOOKUP(159, "0x96")
  LOOKUP(160, "0xe8")
  LOOKUP(161, "0x1b")
  LOOKUP(162, "0xca")
  WORD3(163, "bfe.u32")
  WORD3(164, "bfe.s32")
  WORD4(165, "bfi.b32")
  WORD3(166, "prmt.b32")
  WORD3(167, "prmt.b32.f4e")
  WORD3(168, "prmt.b32.b4e")
  WORD3(169, "prmt.b32.rc8")
  WORD3(170, "prmt.b32.ecl")
  WORD3(171, "prmt.b32.ecr")
  WORD3(172, "prmt.b32.rc16")
  COMPARE2(173, "setp.eq.b32")
  COMPARE3(174, "setp.eq.and.b32")
  COMPARE3(175, "setp.eq.or.b32")
  COMPARE3(176, "setp.eq.xor.b32")
  COMPARE2(177, "setp.ne.b32")
  COMPARE3(178, "setp.ne.and.b32")
  COMPARE3(179, "setp.ne.or.b32")
  COMPARE3(180, "setp.ne.xor.b32")
  COMPARE2(181, "setp.eq.s32")
  COMPARE3(182, "setp.eq.and.s32")
  COMPARE3(183, "setp.eq.or.s32")
  COMPARE3(184, "setp.eq.xor.s32")
  COMPARE2(185, "setp.ne.s32")
  COMPARE3(186, "setp.ne.and.s32")
  COMPARE3(187, "setp.ne.or.s32")
  COMPARE3(188, "setp.ne.xor.s32")
  COMPARE2(189, "setp.lt.s32")
  COMPARE3(190, "setp.lt.and.s32")
  COMPARE3(191, "setp.lt.or.s32")
  COMPARE3(192, "setp.lt.xor.s32")
  COMPARE2(193, "setp.le.s32")
  COMPARE3(194, "setp.le.and.s32")
  COMPARE3(195, "setp.le.or.s32")
  COMPARE3(196, "setp.le.xor.s32")
  COMPARE2(197, "setp.gt.s32")
  COMPARE3(198, "setp.gt.and.s32")
  COMPARE3(199, "setp.gt.or.s32")
  COMPARE3(200, "setp.gt.xor.s32")
  COMPARE2(201, "setp.ge.s32")
  COMPARE3(202, "setp.ge.and.s32")
  COMPARE3(203, "setp.ge.or.s32")
  COMPARE3(204, "setp.ge.xor.s32")
  COMPARE2(205, "setp.eq.u32")
  COMPARE3(206, "setp.eq.and.u32")
  COMPARE3(207, "setp.eq.or.u32")
  COMPARE3(208, "setp.eq.xor.u32")
  COMPARE2(209, "setp.ne.u32")
  COMPARE3(210, "setp.ne.and.u32")
  COMPARE3(211, "setp.ne.or.u32")
  COMPARE3(212, "setp.ne.xor.u32")
  COMPARE2(213, "setp.lt.u32")
  COMPARE3(214, "setp.lt.and.u32")
  COMPARE3(215, "setp.lt.or.u32")
  COMPARE3(216, "setp.lt.xor.u32")
  COMPARE2(217, "setp.le.u32")
  COMPARE3(218, "setp.le.and.u32")
  COMPARE3(219, "setp.le.or.u32")
  COMPARE3(220, "setp.le.xor.u32")
  COMPARE2(221, "setp.gt.u32")
  COMPARE3(222, "setp.gt.and.u32")
  COMPARE3(223, "setp.gt.or.u32")
  COMPARE3(224, "setp.gt.xor.u32")
  COMPARE2(225, "setp.ge.u32")
  COMPARE3(226, "setp.ge.and.u32")
  COMPARE3(227, "setp.ge.or.u32")
  COMPARE3(228, "setp.ge.xor.u32")
  COMPARE2(229, "setp.lo.u32")
  COMPARE3(230, "setp.lo.and.u32")
  COMPARE3(231, "setp.lo.or.u32")
  COMPARE3(232, "setp.lo.xor.u32")
  COMPARE2(233, "setp.ls.u32")
  COMPARE3(234, "setp.ls.and.u32")
  COMPARE3(235, "setp.ls.or.u32")
  COMPARE3(236, "setp.ls.xor.u32")
  COMPARE2(237, "setp.hi.u32")
  COMPARE3(238, "setp.hi.and.u32")
  COMPARE3(239, "setp.hi.or.u32")
  COMPARE3(240, "setp.hi.xor.u32")
  COMPARE2(241, "setp.hs.u32")
  COMPARE3(242, "setp.hs.and.u32")
  COMPARE3(243, "setp.hs.or.u32")
  COMPARE3(244, "setp.hs.xor.u32")
  COMPARE2(245, "setp.eq.f32")
  COMPARE3(246, "setp.eq.and.f32")
  COMPARE3(247, "setp.eq.or.f32")
  COMPARE3(248, "setp.eq.xor.f32")
  COMPARE2(249, "setp.ne.f32")
  COMPARE3(250, "setp.ne.and.f32")
  COMPARE3(251, "setp.ne.or.f32")
  COMPARE3(252, "setp.ne.xor.f32")
  COMPARE2(253, "setp.lt.f32")
  COMPARE3(254, "setp.lt.and.f32")
  COMPARE3(255, "setp.lt.or.f32")
  COMPARE3(256, "setp.lt.xor.f32")
  COMPARE2(257, "setp.le.f32")
  COMPARE3(258, "setp.le.and.f32")
  COMPARE3(259, "setp.le.or.f32")
  COMPARE3(260, "setp.le.xor.f32")
  COMPARE2(261, "setp.gt.f32")
  COMPARE3(262, "setp.gt.and.f32")
  COMPARE3(263, "setp.gt.or.f32")
  COMPARE3(264, "setp.gt.xor.f32")
  COMPARE2(265, "setp.ge.f32")
  COMPARE3(266, "setp.ge.and.f32")
  COMPARE3(267, "setp.ge.or.f32")
  COMPARE3(268, "setp.ge.xor.f32")
  COMPARE2(269, "setp.num.f32")
  COMPARE3(270, "setp.num.and.f32")
  COMPARE3(271, "setp.num.or.f32")
  COMPARE3(272, "setp.num.xor.f32")
  COMPARE2(273, "setp.equ.f32")
  COMPARE3(274, "setp.equ.and.f32")
  COMPARE3(275, "setp.equ.or.f32")
  COMPARE3(276, "setp.equ.xor.f32")
  COMPARE2(277, "setp.neu.f32")
  COMPARE3(278, "setp.neu.and.f32")
  COMPARE3(279, "setp.neu.or.f32")
  COMPARE3(280, "setp.neu.xor.f32")
  COMPARE2(281, "setp.ltu.f32")
  COMPARE3(282, "setp.ltu.and.f32")
  COMPARE3(283, "setp.ltu.or.f32")
  COMPARE3(284, "setp.ltu.xor.f32")
  COMPARE2(285, "setp.leu.f32")
  COMPARE3(286, "setp.leu.and.f32")
  COMPARE3(287, "setp.leu.or.f32")
  COMPARE3(288, "setp.leu.xor.f32")
  COMPARE2(289, "setp.gtu.f32")
  COMPARE3(290, "setp.gtu.and.f32")
  COMPARE3(291, "setp.gtu.or.f32")
  COMPARE3(292, "setp.gtu.xor.f32")
  COMPARE2(293, "setp.geu.f32")
  COMPARE3(294, "setp.geu.and.f32")
  COMPARE3(295, "setp.geu.or.f32")
  COMPARE3(296, "setp.geu.xor.f32")
  COMPARE2(297, "setp.nan.f32")
  COMPARE3(298, "setp.nan.and.f32")
  COMPARE3(299, "setp.nan.or.f32")
  COMPARE3(300, "setp.nan.xor.f32")
  COMPARE2(301, "setp.eq.ftz.f32")
  COMPARE3(302, "setp.eq.and.ftz.f32")
  COMPARE3(303, "setp.eq.or.ftz.f32")
  COMPARE3(304, "setp.eq.xor.ftz.f32")
  COMPARE2(305, "setp.ne.ftz.f32")
  COMPARE3(306, "setp.ne.and.ftz.f32")
  COMPARE3(307, "setp.ne.or.ftz.f32")
  COMPARE3(308, "setp.ne.xor.ftz.f32")
  COMPARE2(309, "setp.lt.ftz.f32")
  COMPARE3(310, "setp.lt.and.ftz.f32")
  COMPARE3(311, "setp.lt.or.ftz.f32")
  COMPARE3(312, "setp.lt.xor.ftz.f32")
  COMPARE2(313, "setp.le.ftz.f32")
  COMPARE3(314, "setp.le.and.ftz.f32")
  COMPARE3(315, "setp.le.or.ftz.f32")
  COMPARE3(316, "setp.le.xor.ftz.f32")
  COMPARE2(317, "setp.gt.ftz.f32")
  COMPARE3(318, "setp.gt.and.ftz.f32")
  COMPARE3(319, "setp.gt.or.ftz.f32")
  COMPARE3(320, "setp.gt.xor.ftz.f32")
  COMPARE2(321, "setp.ge.ftz.f32")
  COMPARE3(322, "setp.ge.and.ftz.f32")
  COMPARE3(323, "setp.ge.or.ftz.f32")
  COMPARE3(324, "setp.ge.xor.ftz.f32")
  COMPARE2(325, "setp.num.ftz.f32")
  COMPARE3(326, "setp.num.and.ftz.f32")
  COMPARE3(327, "setp.num.or.ftz.f32")
  COMPARE3(328, "setp.num.xor.ftz.f32")
  COMPARE2(329, "setp.equ.ftz.f32")
  COMPARE3(330, "setp.equ.and.ftz.f32")
  COMPARE3(331, "setp.equ.or.ftz.f32")
  COMPARE3(332, "setp.equ.xor.ftz.f32")
  COMPARE2(333, "setp.neu.ftz.f32")
  COMPARE3(334, "setp.neu.and.ftz.f32")
  COMPARE3(335, "setp.neu.or.ftz.f32")
  COMPARE3(336, "setp.neu.xor.ftz.f32")
  COMPARE2(337, "setp.ltu.ftz.f32")
  COMPARE3(338, "setp.ltu.and.ftz.f32")
  COMPARE3(339, "setp.ltu.or.ftz.f32")
  COMPARE3(340, "setp.ltu.xor.ftz.f32")
  COMPARE2(341, "setp.leu.ftz.f32")
  COMPARE3(342, "setp.leu.and.ftz.f32")
  COMPARE3(343, "setp.leu.or.ftz.f32")
  COMPARE3(344, "setp.leu.xor.ftz.f32")
  COMPARE2(345, "setp.gtu.ftz.f32")
  COMPARE3(346, "setp.gtu.and.ftz.f32")
  COMPARE3(347, "setp.gtu.or.ftz.f32")
  COMPARE3(348, "setp.gtu.xor.ftz.f32")
  COMPARE2(349, "setp.geu.ftz.f32")
  COMPARE3(350, "setp.geu.and.ftz.f32")
  COMPARE3(351, "setp.geu.or.ftz.f32")
  COMPARE3(352, "setp.geu.xor.ftz.f32")
  COMPARE2(353, "setp.nan.ftz.f32")
  COMPARE3(354, "setp.nan.and.ftz.f32")
  COMPARE3(355, "setp.nan.or.ftz.f32")
  COMPARE3(356, "setp.nan.xor.ftz.f32")
#endif
}

const char *names[] = {
#ifdef BLACKWELL
    "add.f32x2",
    "add.ftz.f32x2",
    "add.rn.f32x2",
    "add.rn.ftz.f32x2",
    "add.rz.f32x2",
    "add.rz.ftz.f32x2",
    "add.rm.f32x2",
    "add.rm.ftz.f32x2",
    "add.rp.f32x2",
    "add.rp.ftz.f32x2",
    "sub.f32x2",
    "sub.ftz.f32x2",
    "sub.rn.f32x2",
    "sub.rn.ftz.f32x2",
    "sub.rz.f32x2",
    "sub.rz.ftz.f32x2",
    "sub.rm.f32x2",
    "sub.rm.ftz.f32x2",
    "sub.rp.f32x2",
    "sub.rp.ftz.f32x2",
    "mul.f32x2",
    "mul.ftz.f32x2",
    "mul.rn.f32x2",
    "mul.rn.ftz.f32x2",
    "mul.rz.f32x2",
    "mul.rz.ftz.f32x2",
    "mul.rm.f32x2",
    "mul.rm.ftz.f32x2",
    "mul.rp.f32x2",
    "mul.rp.ftz.f32x2",
    "fma.rn.f32x2",
    "fma.rn.ftz.f32x2",
    "fma.rz.f32x2",
    "fma.rz.ftz.f32x2",
    "fma.rm.f32x2",
    "fma.rm.ftz.f32x2",
    "fma.rp.f32x2",
    "fma.rp.ftz.f32x2",
    "min.f32",
    "min.NaN.f32",
    "min.ftz.f32",
    "min.ftz.NaN.f32",
    "max.f32",
    "max.NaN.f32",
    "max.ftz.f32",
    "max.ftz.NaN.f32",
    "mov.b64",
    "mov.u64",
    "mov.s64",
#else
    "add.f32",
    "add.ftz.f32",
    "add.rn.f32",
    "add.rn.ftz.f32",
    "add.rz.f32",
    "add.rz.ftz.f32",
    "add.rm.f32",
    "add.rm.ftz.f32",
    "add.rp.f32",
    "add.rp.ftz.f32",
    "sub.f32",
    "sub.ftz.f32",
    "sub.rn.f32",
    "sub.rn.ftz.f32",
    "sub.rz.f32",
    "sub.rz.ftz.f32",
    "sub.rm.f32",
    "sub.rm.ftz.f32",
    "sub.rp.f32",
    "sub.rp.ftz.f32",
    "mul.f32",
    "mul.ftz.f32",
    "mul.rn.f32",
    "mul.rn.ftz.f32",
    "mul.rz.f32",
    "mul.rz.ftz.f32",
    "mul.rm.f32",
    "mul.rm.ftz.f32",
    "mul.rp.f32",
    "mul.rp.ftz.f32",
    "fma.rn.f32",
    "fma.rn.ftz.f32",
    "fma.rz.f32",
    "fma.rz.ftz.f32",
    "fma.rm.f32",
    "fma.rm.ftz.f32",
    "fma.rp.f32",
    "fma.rp.ftz.f32",
    "min.f32",
    "min.NaN.f32",
    "min.ftz.f32",
    "min.ftz.NaN.f32",
    "max.f32",
    "max.NaN.f32",
    "max.ftz.f32",
    "max.ftz.NaN.f32",
    "neg.f32",
    "neg.ftz.f32",
    "abs.f32",
    "abs.ftz.f32",
    "ex2.approx.ftz.f32",
    "ex2.approx.f32",
    "rcp.approx.ftz.f32",
    "lg2.approx.ftz.f32",
    "rsqrt.approx.ftz.f32",
    "tanh.approx.f32",
    "ex2.approx.ftz.bf16",
    "ex2.approx.f16",
    "tanh.approx.bf16",
    "tanh.approx.f16",
    "cvt.rn.bf16x2.f32",
    "cvt.rn.bf16.f32",
    "cvt.rz.bf16x2.f32",
    "cvt.rz.bf16.f32",
    "cvt.rn.satfinite.bf16x2.f32",
    "cvt.rn.satfinite.bf16.f32",
    "cvt.rz.satfinite.bf16x2.f32",
    "cvt.rz.satfinite.bf16.f32",
    "cvt.rn.f16x2.f32",
    "cvt.rn.f16.f32",
    "cvt.rz.f16x2.f32",
    "cvt.rz.f16.f32",
    "cvt.rn.satfinite.f16x2.f32",
    "cvt.rn.satfinite.f16.f32",
    "cvt.rz.satfinite.f16x2.f32",
    "cvt.rz.satfinite.f16.f32",
    "cvt.rn.satfinite.e4m3x2.f32",
    "cvt.rn.satfinite.e5m2x2.f32",
    "cvt.rn.satfinite.e4m3x2.f16x2",
    "cvt.rn.satfinite.e5m2x2.f16x2",
    "cvt.rn.f16x2.e4m3x2",
    "cvt.rn.f16x2.e5m2x2",
    "cvt.f32.f16",
    "cvt.f32.bf16",
    "cvt.rni.s32.f32",
    "cvt.rni.u32.f32",
    "cvt.rni.f32.f32",
    "cvt.rni.ftz.s32.f32",
    "cvt.rni.ftz.u32.f32",
    "cvt.rni.ftz.f32.f32",
    "cvt.rzi.s32.f32",
    "cvt.rzi.u32.f32",
    "cvt.rzi.f32.f32",
    "cvt.rzi.ftz.s32.f32",
    "cvt.rzi.ftz.u32.f32",
    "cvt.rzi.ftz.f32.f32",
    "cvt.rmi.s32.f32",
    "cvt.rmi.u32.f32",
    "cvt.rmi.f32.f32",
    "cvt.rmi.ftz.s32.f32",
    "cvt.rmi.ftz.u32.f32",
    "cvt.rmi.ftz.f32.f32",
    "cvt.rpi.s32.f32",
    "cvt.rpi.u32.f32",
    "cvt.rpi.f32.f32",
    "cvt.rpi.ftz.s32.f32",
    "cvt.rpi.ftz.u32.f32",
    "cvt.rpi.ftz.f32.f32",
    "cvt.rn.f32.s32",
    "cvt.rn.f32.u32",
    "cvt.rz.f32.s32",
    "cvt.rz.f32.u32",
    "cvt.rm.f32.s32",
    "cvt.rm.f32.u32",
    "cvt.rp.f32.s32",
    "cvt.rp.f32.u32",
    "add.s32",
    "sub.s32",
    "mul.lo.s32",
    "mad.lo.s32",
    "add.u32",
    "sub.u32",
    "mul.lo.u32",
    "mad.lo.u32",
    "mul.hi.u32",
    "mad.hi.u32",
    "min.u32",
    "max.u32",
    "mul.hi.s32",
    "mad.hi.s32",
    "min.s32",
    "max.s32",
    "neg.s32",
    "abs.s32",
    "mov.b32",
    "mov.u32",
    "mov.s32",
    "mov.f32",
    "mov.pred",
    "selp.b32",
    "selp.u32",
    "selp.s32",
    "selp.f32",
    "shl.b32",
    "shr.b32",
    "shr.u32",
    "shr.s32",
    "shf.l.wrap.b32",
    "shf.r.wrap.b32",
    "shf.l.clamp.b32",
    "shf.r.clamp.b32",
    "and.b32",
    "or.b32",
    "xor.b32",
    "not.b32",
    "and.pred",
    "or.pred",
    "xor.pred",
    "not.pred",
    "lop3.b32 0x96",
    "lop3.b32 0xe8",
    "lop3.b32 0x1b",
    "lop3.b32 0xca",
    "bfe.u32",
    "bfe.s32",
    "bfi.b32",
    "prmt.b32",
    "prmt.b32.f4e",
    "prmt.b32.b4e",
    "prmt.b32.rc8",
    "prmt.b32.ecl",
    "prmt.b32.ecr",
    "prmt.b32.rc16",
    "setp.eq.b32",
    "setp.eq.and.b32",
    "setp.eq.or.b32",
    "setp.eq.xor.b32",
    "setp.ne.b32",
    "setp.ne.and.b32",
    "setp.ne.or.b32",
    "setp.ne.xor.b32",
    "setp.eq.s32",
    "setp.eq.and.s32",
    "setp.eq.or.s32",
    "setp.eq.xor.s32",
    "setp.ne.s32",
    "setp.ne.and.s32",
    "setp.ne.or.s32",
    "setp.ne.xor.s32",
    "setp.lt.s32",
    "setp.lt.and.s32",
    "setp.lt.or.s32",
    "setp.lt.xor.s32",
    "setp.le.s32",
    "setp.le.and.s32",
    "setp.le.or.s32",
    "setp.le.xor.s32",
    "setp.gt.s32",
    "setp.gt.and.s32",
    "setp.gt.or.s32",
    "setp.gt.xor.s32",
    "setp.ge.s32",
    "setp.ge.and.s32",
    "setp.ge.or.s32",
    "setp.ge.xor.s32",
    "setp.eq.u32",
    "setp.eq.and.u32",
    "setp.eq.or.u32",
    "setp.eq.xor.u32",
    "setp.ne.u32",
    "setp.ne.and.u32",
    "setp.ne.or.u32",
    "setp.ne.xor.u32",
    "setp.lt.u32",
    "setp.lt.and.u32",
    "setp.lt.or.u32",
    "setp.lt.xor.u32",
    "setp.le.u32",
    "setp.le.and.u32",
    "setp.le.or.u32",
    "setp.le.xor.u32",
    "setp.gt.u32",
    "setp.gt.and.u32",
    "setp.gt.or.u32",
    "setp.gt.xor.u32",
    "setp.ge.u32",
    "setp.ge.and.u32",
    "setp.ge.or.u32",
    "setp.ge.xor.u32",
    "setp.lo.u32",
    "setp.lo.and.u32",
    "setp.lo.or.u32",
    "setp.lo.xor.u32",
    "setp.ls.u32",
    "setp.ls.and.u32",
    "setp.ls.or.u32",
    "setp.ls.xor.u32",
    "setp.hi.u32",
    "setp.hi.and.u32",
    "setp.hi.or.u32",
    "setp.hi.xor.u32",
    "setp.hs.u32",
    "setp.hs.and.u32",
    "setp.hs.or.u32",
    "setp.hs.xor.u32",
    "setp.eq.f32",
    "setp.eq.and.f32",
    "setp.eq.or.f32",
    "setp.eq.xor.f32",
    "setp.ne.f32",
    "setp.ne.and.f32",
    "setp.ne.or.f32",
    "setp.ne.xor.f32",
    "setp.lt.f32",
    "setp.lt.and.f32",
    "setp.lt.or.f32",
    "setp.lt.xor.f32",
    "setp.le.f32",
    "setp.le.and.f32",
    "setp.le.or.f32",
    "setp.le.xor.f32",
    "setp.gt.f32",
    "setp.gt.and.f32",
    "setp.gt.or.f32",
    "setp.gt.xor.f32",
    "setp.ge.f32",
    "setp.ge.and.f32",
    "setp.ge.or.f32",
    "setp.ge.xor.f32",
    "setp.num.f32",
    "setp.num.and.f32",
    "setp.num.or.f32",
    "setp.num.xor.f32",
    "setp.equ.f32",
    "setp.equ.and.f32",
    "setp.equ.or.f32",
    "setp.equ.xor.f32",
    "setp.neu.f32",
    "setp.neu.and.f32",
    "setp.neu.or.f32",
    "setp.neu.xor.f32",
    "setp.ltu.f32",
    "setp.ltu.and.f32",
    "setp.ltu.or.f32",
    "setp.ltu.xor.f32",
    "setp.leu.f32",
    "setp.leu.and.f32",
    "setp.leu.or.f32",
    "setp.leu.xor.f32",
    "setp.gtu.f32",
    "setp.gtu.and.f32",
    "setp.gtu.or.f32",
    "setp.gtu.xor.f32",
    "setp.geu.f32",
    "setp.geu.and.f32",
    "setp.geu.or.f32",
    "setp.geu.xor.f32",
    "setp.nan.f32",
    "setp.nan.and.f32",
    "setp.nan.or.f32",
    "setp.nan.xor.f32",
    "setp.eq.ftz.f32",
    "setp.eq.and.ftz.f32",
    "setp.eq.or.ftz.f32",
    "setp.eq.xor.ftz.f32",
    "setp.ne.ftz.f32",
    "setp.ne.and.ftz.f32",
    "setp.ne.or.ftz.f32",
    "setp.ne.xor.ftz.f32",
    "setp.lt.ftz.f32",
    "setp.lt.and.ftz.f32",
    "setp.lt.or.ftz.f32",
    "setp.lt.xor.ftz.f32",
    "setp.le.ftz.f32",
    "setp.le.and.ftz.f32",
    "setp.le.or.ftz.f32",
    "setp.le.xor.ftz.f32",
    "setp.gt.ftz.f32",
    "setp.gt.and.ftz.f32",
    "setp.gt.or.ftz.f32",
    "setp.gt.xor.ftz.f32",
    "setp.ge.ftz.f32",
    "setp.ge.and.ftz.f32",
    "setp.ge.or.ftz.f32",
    "setp.ge.xor.ftz.f32",
    "setp.num.ftz.f32",
    "setp.num.and.ftz.f32",
    "setp.num.or.ftz.f32",
    "setp.num.xor.ftz.f32",
    "setp.equ.ftz.f32",
    "setp.equ.and.ftz.f32",
    "setp.equ.or.ftz.f32",
    "setp.equ.xor.ftz.f32",
    "setp.neu.ftz.f32",
    "setp.neu.and.ftz.f32",
    "setp.neu.or.ftz.f32",
    "setp.neu.xor.ftz.f32",
    "setp.ltu.ftz.f32",
    "setp.ltu.and.ftz.f32",
    "setp.ltu.or.ftz.f32",
    "setp.ltu.xor.ftz.f32",
    "setp.leu.ftz.f32",
    "setp.leu.and.ftz.f32",
    "setp.leu.or.ftz.f32",
    "setp.leu.xor.ftz.f32",
    "setp.gtu.ftz.f32",
    "setp.gtu.and.ftz.f32",
    "setp.gtu.or.ftz.f32",
    "setp.gtu.xor.ftz.f32",
    "setp.geu.ftz.f32",
    "setp.geu.and.ftz.f32",
    "setp.geu.or.ftz.f32",
    "setp.geu.xor.ftz.f32",
    "setp.nan.ftz.f32",
    "setp.nan.and.ftz.f32",
    "setp.nan.or.ftz.f32",
    "setp.nan.xor.ftz.f32",
#endif
};
constexpr int instructionCount = sizeof(names) / sizeof(*names);

uint32_t mix(uint32_t hash) {
  hash ^= hash >> 16;
  hash *= 0x85ebca6b;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35;
  return hash ^ hash >> 16;
}

uint32_t hashOf(const uint32_t *words, size_t count) {
  uint32_t hash = 0x811c9dc5;
  for (size_t i = 0; i < count; i++) hash = mix(hash ^ words[i]) + 0x9e3779b9;
  return hash;
}

#define CHECK(call)                                                                                \
  if (cudaError_t error = call) return fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;

const uint32_t specials[] = {0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x3effffff, 0x3f000000,
                             0x3f000001, 0x3fc00000, 0x40200000, 0x4b000001, 0x4effffff, 0x4f000000,
                             0x4f7fffff, 0x4f800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
                             0x7fffffff, 0x00000020, 0x0000001f, 0x000000ff, 0x00000100, 0x80000000};

int main(int argc, char **argv) {
  std::vector<uint32_t> operands(4 * patternCount);
  for (int i = 0; i < patternCount; i++) {
    uint32_t base = mix(seed + (uint32_t)i * 0x9e3779b9);
    for (int k = 0; k < 4; k++) {
      uint32_t word = mix(base + (uint32_t)(k + 1) * 0x6a09e667);
      uint32_t kind = base >> (8 * k) & 7;
      if (kind == 1) word &= 0x3f;
      if (kind == 2) word = specials[word % 24] | (word & 0x80000000);
      if (kind == 3) word = (word & 0x807fffff) | (0x7e + (word >> 23 & 0xff) % 0x24) << 23;
      if (kind == 4) word = (word & 0x807fff00) | (0x7e + (word >> 23 & 0xff) % 8) << 23;
      if (kind == 5) word &= 0x80ffffff;
      operands[4 * i + k] = word;
    }
    if (base >> 28 == 0) operands[4 * i + 1] = operands[4 * i];
    if (base >> 28 == 1) operands[4 * i + 1] = operands[4 * i] ^ 0x80000000;
  }
  size_t resultWords = (size_t)instructionCount * patternCount;
  std::vector<uint32_t> results(resultWords);
  uint32_t *deviceOperands, *deviceResults;
  CHECK(cudaMalloc(&deviceOperands, operands.size() * 4))
  CHECK(cudaMalloc(&deviceResults, resultWords * 4))
  CHECK(cudaMemcpy(deviceOperands, operands.data(), operands.size() * 4, cudaMemcpyHostToDevice))
  evaluate<<<patternCount / 128, 128>>>(deviceOperands, deviceResults);
  CHECK(cudaMemcpy(results.data(), deviceResults, resultWords * 4, cudaMemcpyDeviceToHost))
  printf("operands %08x\n", hashOf(operands.data(), operands.size()));
  for (int k = 0; k < instructionCount; k++)
    printf("%s %08x\n", names[k], hashOf(&results[(size_t)k * patternCount], patternCount));
  if (argc > 1) {
    FILE *file = fopen(argv[1], "wb");
    fwrite(results.data(), 4, resultWords, file);
    fclose(file);
  }
}
