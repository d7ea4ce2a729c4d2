GPUS=8
ARGS=(--num-layers 4 --hidden-size=64 --num-attention-heads 4 # heads
  --moe-layer-freq "([0]*1+[1]*3)" --num-experts 4)
ARGS+=(--pipeline-model-parallel-layout 'Et|t|t|tL' --vocab-size ${VOCAB:-512})
torchrun --nproc_per_node $(($GPUS*2)) train.py ${ARGS[@]} --pipeline-model-parallel-size 2 \
  --micro-batch-size 1 --global-batch-size 16 --recompute-granularity full
