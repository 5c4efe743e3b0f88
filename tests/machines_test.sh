#!/usr/bin/env bash
# Models over the processes that mpirun starts (docs/machines.md): for any number of ranks the same logits and texts, bit for bit; what is
# not divided is refused by name; ranks that differ are refused; when a rank dies nothing wrong is printed.
#
#   machines_test.sh HUNCH LIBHUNCH_MPI DATA [RANKS...]    2: a sample of the cases; others (2 3 4): all of them
set -u
hunch=$1 library=$2 data=$3
shift 3
ranks=${*:-2}
[ "$ranks" = 2 ] && light=1 || light=
command -v mpirun > /dev/null && [ -e "$library" ] || { echo "skipped: no MPI (make deps installs it)"; exit 77; }
mpirun="mpirun --allow-run-as-root --oversubscribe --bind-to none"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
wrong=0
cases=0
fail() { echo "WRONG: $*"; wrong=1; }
over() { # ranks, then a command: mpirun adds lines of its own to errors alone
    local n=$1
    shift
    timeout -k 5 120 $mpirun -n "$n" "$@" < /dev/null
}

# ---- the same bits --------------------------------------------------------------------------------------------------------------

same() { # a command whose whole standard output is compared
    "$@" > alone 2> alone.err < /dev/null || fail "alone: $*: $(cat alone.err)"
    [ -s alone ] || fail "nothing printed: $*"
    for n in $ranks; do
        cases=$((cases + 1))
        over "$n" "$@" > many 2> many.err || {
            # a tiny model may have fewer parts than there are ranks
            [ "$n" -gt 2 ] && [ ! -s many ] && grep -q "cannot be divided among $n ranks: expected fewer" many.err && continue
            fail "$n ranks: $*: $(grep -m1 hunch many.err)"
        }
        cmp -s alone many || fail "$n ranks: another output: $*"
    done
}
text() { sed 's/.*"text": *"\(\([^"\\]\|\\.\)*\)".*/\1/'; } # of answers as JSON
same_rows() {
    "$@" 2> alone.err < /dev/null | text > alone
    [ "$(wc -l < alone)" -ge 4 ] || fail "no rows: $*: $(cat alone.err)"
    for n in $ranks; do
        cases=$((cases + 1))
        over "$n" "$@" 2> many.err | text > many
        cmp -s alone many || fail "$n ranks: other rows: $*: $(grep -m1 hunch many.err)"
    done
}

stories=$data/models/stories260K/stories260K.f32.gguf baby=$data/models/babyllama105/babyllama105.q8_0.gguf
begin="Once upon a time there was a girl who had a dog. The dog"
echo "[1, 5, 9, 11, 3, 7, 2, 14, 6, 8, 10, 12, 5, 9, 11, 3, 7, 2]" > ids.json
same "$hunch" logits "$baby" --threads 2 -p "$begin" -o -
same "$hunch" run "$stories" "$begin" -n 60 --temperature 0 --threads 1 --draft ngram --draft suffix --quiet
for p in "$begin was" "$begin ran" "The cat" "$begin was"; do # batches, and prompts that begin alike
    printf '{"prompt": "%s"}\n' "$p"
done > rows.jsonl
same_rows "$hunch" run "$stories" -f rows.jsonl --json-lines --parallel 2 -n 24 --seed 7 --threads 1 --draft recycle --quiet
# every family of models: a tiny one of each
families="gemma3_text-local mixtral-top2 deepseek_v3-yarn qwen3_5-dense lfm2-conv olmo2-rows"
[ "$light" ] || families=$(ls "$data/goldens")
undivided="$(cat "$data/machines/undivided.txt")"
for family in $families; do
    case " $undivided " in *[[:space:]]${family}[[:space:]]*) continue ;; esac
    [ -d "$data/goldens/$family" ] || continue
    case $family in *-assistant) continue ;; esac
    same "$hunch" logits "$data/goldens/$family" --tokens ids.json --threads 1 --quiet -o -
done
# recurrent layers: states that passes continue, drafts that are rejected, in both orders of value heads, and where rows stay in the file
"$hunch" convert "$data/goldens/qwen3_5-dense" -o tiled.gguf 2> /dev/null
for model in "$data/goldens/qwen3_next-moe" tiled.gguf "$data/goldens/lfm2_moe-bias"; do
    same "$hunch" run "$model" --tokens ids.json -n 40 --temperature 0 --threads 1 --draft lookahead --draft ngram --quiet
    [ "$light" ] && break
    same "$hunch" logits "$model" --tokens ids.json --threads 1 --mapped --quiet -o -
    same "$hunch" logits "$model" --tokens ids.json --threads 1 --kv f32 --precision f32 --quiet -o -
    same "$hunch" run "$model" --tokens ids.json -n 40 --seed 3 --threads 2 --draft recycle --quiet
done
# draft heads, on the leader: what they draft after drafts that were taken, to the bits of their numbers; and in batches with common prompts
heads=$data/goldens-heads
drafts() { # KIND, folder, then flags
    local kind=$1 at=$heads/$2 target
    shift 2
    target=$(sed -n 's/.*"target": *"\([^"]*\)".*/\1/p' "$at/golden.json")
    same "$hunch" draft "$at/$target" --tokens ids.json --draft "$kind:$at/head" --threads 1 "$@"
}
drafts eagle3 eagle3spec-plain --accept 1 -o drafted.safetensors
mv drafted.safetensors drafted.many
"$hunch" draft "$heads/targets/llama-a" --tokens ids.json --draft "eagle3:$heads/eagle3spec-plain/head" --threads 1 --accept 1 \
    -o drafted.safetensors > alone 2> alone.err < /dev/null
cmp -s drafted.many drafted.safetensors || fail "other numbers of drafts"
same_rows "$hunch" run "$stories" -f rows.jsonl --json-lines --parallel 2 -n 24 --seed 7 --threads 1 \
    --draft "eagle3:$data/heads/stories-eagle3" --quiet
# a head's pass moves rows of the target too: those of another drafter's tree that were taken
same "$hunch" run "$stories" "$begin" -n 80 --temperature 0 --draft "recycle+eagle3:$data/heads/stories-eagle3" --threads 1 --quiet
# a draft model over the ranks too
same "$hunch" run "$stories" "$begin" -n 60 --temperature 0 --threads 1 --quiet \
    --draft "model:$data/models/stories260K/stories260K.f16.gguf,over=ranks+recycle"
if [ -z "$light" ]; then
    for model in qwen3_5-dense qwen3_next-moe lfm2-conv; do
        same "$hunch" run "$data/goldens/$model" --tokens ids.json -n 40 --temperature 0 --threads 1 --quiet \
            --draft "model:$data/goldens/$model,over=ranks,depth=3+recycle"
    done
    same_rows "$hunch" run "$stories" -f rows.jsonl --json-lines --parallel 2 -n 24 --temperature 1 --seed 7 --threads 1 \
        --draft "model:$stories,over=ranks" --quiet
    for at in "$heads"/*/golden.json; do
        at=${at%/golden.json}
        drafts "$(sed -n 's/.*"kind": *"\([^"]*\)".*/\1/p' "$at/golden.json")" "${at##*/}" --accept 1
    done
    drafts eagle3 eagle3spec-v31 --tree 4,20
    drafts eagle3 eagle3spec-v31 --temperature 1 --seed 4
    same "$hunch" draft "$data/goldens/qwen3_5-dense" --tokens ids.json --draft mtp --threads 1 --accept 1
    same "$hunch" run "$data/goldens/qwen3_next-moe" --tokens ids.json -n 40 --seed 9 --threads 1 --draft mtp --quiet
    # inputs in an order of their own (GPTQ's act order): the numbers mean others then, which is the same for all
    cp -r "$data/goldens/qwen2-gptq" ordered
    chmod -R u+w ordered
    sed -i 's/"desc_act":false/"desc_act":true/' ordered/config.json
    python3 - ordered/model.safetensors << 'END'
import json, random, struct, sys
random.seed(7)
b = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", b[:8])[0]
for name, t in json.loads(b[8:8 + n]).items():
    if name.endswith("g_idx"):
        at, end = (8 + n + x for x in t["data_offsets"])
        groups = list(struct.unpack(f"<{(end - at) // 4}i", b[at:end]))
        random.shuffle(groups)
        b[at:end] = struct.pack(f"<{len(groups)}i", *groups)
open(sys.argv[1], "wb").write(b)
END
    same "$hunch" logits ordered --tokens ids.json --threads 2 --quiet -o -
    for model in "$stories" "$baby" "$data/models/babyllama105/babyllama105.f32.gguf" "$data/models/stories260K/stories260K.f16.gguf"; do
        for more in "" "--mapped" "--precision f32" "--kv f32" "--isa ref"; do
            same "$hunch" logits "$model" --threads 1 -p "$begin" -o - $more
        done
        same "$hunch" run "$model" "$begin" -n 100 --seed 3 --threads 2 --quiet
        same "$hunch" run "$model" "$begin" -n 100 --temperature 0 --threads 1 --draft "model:$model+recycle,tree=paper" --quiet
    done
fi

# ---- refused by name --------------------------------------------------------------------------------------------------------------

refused() { # a pattern, then the command
    local pattern=$1
    shift
    cases=$((cases + 1))
    if timeout -k 5 60 $mpirun "$@" > many 2> many.err < /dev/null; then fail "not refused: $*"; fi
    grep -q "$pattern" many.err || fail "refused otherwise ($pattern): $*: $(grep -m1 hunch many.err)"
    [ -s many ] && fail "printed: $*"
}
for family in $undivided; do
    refused "not divided among ranks yet" -n 2 "$hunch" logits "$data/goldens/$family" --tokens ids.json --threads 1 -o -
    [ "$light" ] && break
done
refused "keys and values of the model, which ranks divide" -n 2 "$hunch" draft "$data/goldens/gemma4-e" --tokens ids.json --threads 1 \
    --draft "assistant:$data/goldens/gemma4-e-assistant"
refused "rank 1 on .*started with f32 where the leader has native" \
    -n 1 "$hunch" run "$stories" x --precision native : -n 1 "$hunch" run "$stories" x --precision f32
mkdir one two
cp "$stories" one/m.gguf
cp "$data/models/stories260K/stories260K.f16.gguf" two/m.gguf
refused "rank 1 on .*another model than the leader's" -n 1 -wdir "$dir/one" "$hunch" run m.gguf x : \
    -n 1 -wdir "$dir/two" "$hunch" run m.gguf x
refused "drafter .*rank 1 on .*another model than the leader's" \
    -n 1 -wdir "$dir/one" "$hunch" run "$stories" x --draft model:m.gguf,over=ranks : \
    -n 1 -wdir "$dir/two" "$hunch" run "$stories" x --draft model:m.gguf,over=ranks
cp "$library" .
if [ -z "$light" ]; then
    refused "convert does not run over ranks" -n 2 "$hunch" convert "$stories" -o x.gguf
    cp "$hunch" other
    printf x >> other
    refused "rank 1 on .*another build" -n 1 "$hunch" run "$stories" x : -n 1 "$dir/other" run "$stories" x
fi

# ---- a rank that dies --------------------------------------------------------------------------------------------------------------

# What was printed is a prefix of the right text, and mpirun says so by its code.
killed() { # after so many milliseconds
    # a rank that dies while MPI starts may leave mpirun waiting for it
    timeout -k 5 20 $mpirun -n 2 "$dir/victim" run "$baby" "$begin" -n 400 --seed 5 --threads 1 --draft none --quiet \
        > many 2> many.err < /dev/null &
    local job=$! victim=
    sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
    victim=$(pgrep -f "^$dir/victim run $baby" | tail -1)
    [ "$victim" ] && kill -9 "$victim" 2> /dev/null
    wait $job
    local code=$?
    cases=$((cases + 1))
    head -c "$(stat -c %s many)" alone | cmp -s - many || fail "killed after $1 ms: printed something else"
    if [ $code -eq 0 ]; then cmp -s alone many || fail "killed after $1 ms: code 0"; else ended=$((ended + 1)); fi
}
"$hunch" run "$baby" "$begin" -n 400 --seed 5 --threads 1 --draft none --quiet > alone 2> /dev/null < /dev/null
cp "$hunch" victim
ended=0
begun=$(date +%s%N)
over 2 "$dir/victim" run "$baby" "$begin" -n 400 --seed 5 --threads 1 --draft none --quiet > many 2> many.err
cmp -s alone many || fail "before any is killed: another text"
whole=$((($(date +%s%N) - begun) / 1000000))
moments=14
[ "$light" ] || moments=$(seq 1 20)
for i in $moments; do # of 21 parts of that time
    killed $((whole * i / 21))
done
[ "$light" ] || [ $ended -ge 5 ] || fail "only $ended of the ranks died in the middle"

echo "$cases cases"
exit $wrong
