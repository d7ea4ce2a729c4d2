// Words of launch scripts: that they mean what bash makes of them, and what is not known is said.
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "sim/interop/shell/script.h"

namespace pipesim::shell_test {
namespace {

ShellScript evaluated(const std::string& text, const std::map<std::string, std::string>& given = {},
                      const std::map<std::string, std::string>& files = {}) {
  return evaluate_shell("run.sh", text, given,
                        [&](const std::string& path) -> std::optional<std::string> {
                          const auto found = files.find(path);
                          if (found == files.end()) return std::nullopt;
                          return found->second;
                        });
}

// The words of every command, a line each; $NAME where one is not known.
std::string run(const std::string& text, const std::map<std::string, std::string>& given = {},
                const std::map<std::string, std::string>& files = {}) {
  const ShellScript script = evaluated(text, given, files);
  std::string lines;
  for (const ShellCommand& command : script.commands) {
    std::string line;
    for (const ShellValue& word : command.words) {
      line += (line.empty() ? "" : "|") + script.readable(word.text);
    }
    lines += line + "\n";
  }
  return lines;
}

TEST(Shell, SplitsWhatIsExpandedWithoutQuotes) {
  EXPECT_EQ(run("A='x  y'\nrun $A \"$A\" '$A' a$A$A"), "run|x|y|x  y|$A|ax|yx|y\n");
  EXPECT_EQ(run("A=(\"--fp8-format hybrid\" --b)\nrun ${A[@]}\nrun \"${A[@]}\"\nrun $A"),
            "run|--fp8-format|hybrid|--b\nrun|--fp8-format hybrid|--b\nrun|--fp8-format|hybrid\n");
  EXPECT_EQ(run("A=\"--x 1\"\nA=\"$A --y 2\"\nA+=\" --z\"\nB=(--p)\nB+=(--q $A)\nrun ${B[@]}"),
            "run|--p|--q|--x|1|--y|2|--z\n");
}

TEST(Shell, TakesApostrophesInQuotesAsTheyStand) {
  EXPECT_EQ(run("A=7\nB=\"didn't\"\necho \"isn't $A\"\nrun $B \"'$A' it's\""),
            "run|didn't|'7' it's\n");
}

TEST(Shell, EndsCommandsWhereTheyEnd) {
  EXPECT_EQ(run("set -x\nrun --fp16\nset +x\nrun --a; run --b | tee log; run --c > out 2>&1 &\n"
                "run --d &> log && run --e \\\n  --f # --g\n"),
            "run|--fp16\nrun|--a\nrun|--b\nrun|--c\nrun|--d\nrun|--e|--f\n");
  EXPECT_EQ(run("cat <<EOF > job\nrun --no\nEOF\nrun --yes\nbash <<EOF\nrun --within\nEOF\n"),
            "run|--yes\nrun|--within\n");
}

TEST(Shell, CalculatesWithPrecedence) {
  EXPECT_EQ(run("A=3\nB=4\nrun $((A + B * 2)) $(( (A+B)*2 )) $((7 / 2 % 2)) $((A > 2 ? 5 : 6))"),
            "run|11|14|1|5\n");
  EXPECT_EQ(run("A=6\n((A *= 2))\nlet B=A+1\nrun $A $B $(expr $A / 4) $(echo \"$A * 2\" | bc)"),
            "run|12|13|3|24\n");
  EXPECT_EQ(run("run $((2 * $TP)) $((1 / 0))"), "run|$TP|?\n");
}

TEST(Shell, TakesDefaultsAndCutsTexts) {
  EXPECT_EQ(run("S=${1:-7B}\nrun $S ${N:=4} $N ${S%B} ${S,,} ${#S} ${S/7/13} ${X:+no}${S:+yes}"),
            "run|7B|4|4|7|7b|2|13B|yes\n");
  EXPECT_EQ(run("P=a/b.sh\nA=(1 2 3)\nI=A\nrun ${P##*/} ${P%/*} ${A[1]} ${#A[@]} ${!I} ${P:2:1}"),
            "run|b.sh|a|2|3|1|b\n");
  EXPECT_EQ(run("declare -A L=([7B]=32 [70B]=80)\nS=70B\nrun ${L[$S]}"), "run|80\n");
}

TEST(Shell, TakesTheBranchThatIsKnown) {
  const std::string sizes =
      "S=${1:-7B}\nif [ $S = 7B ]; then L=28\nelif [[ $S == 72B || $S == 7* ]]; then L=80\nfi\n"
      "case $S in\n 7B|8B) H=3584 ;;\n 72B) H=8192 ;;\n *) H=1 ;;\nesac\nrun $L $H";
  EXPECT_EQ(run(sizes), "run|28|3584\n");
  EXPECT_EQ(run(sizes, {{"1", "72B"}}), "run|80|8192\n");
  EXPECT_EQ(run(sizes, {{"S", "72B"}}), "run|80|8192\n");
  EXPECT_EQ(run("A=2\n[ $A -gt 1 ] && B=\"--x\"\n[[ $A -eq 1 ]] || B+=' --y'\n((A == 3)) && B=\n"
                "! [ $A -lt 3 ] && B=no\nrun $B"),
            "run|--x|--y\n");
  EXPECT_EQ(run("if true; then run yes; else run no; fi\nUSE=false\nif $USE; then run no; fi\n"),
            "run|yes\n");
}

TEST(Shell, AsksForConditionsThatAreNotKnown) {
  const std::string text =
      "O=\"--a 1\"\nif [ \"$KIND\" = moe ]; then\n O=\"$O --experts 8\"\nelse\n O=\"$O --dense\"\n"
      "fi\nO=\"$O --z\"\nrun $O";
  const ShellScript script = evaluated(text);
  EXPECT_EQ(run(text), "run|--a|1|$KIND|--z\n");
  const auto ids = script.unknowns_in(script.commands[0].words[3].text);
  ASSERT_EQ(ids.size(), 1U);
  EXPECT_EQ(script.unknowns[ids[0]].alternatives,
            (std::vector<std::string>{"--experts 8", "--dense"}));
  EXPECT_EQ(run(text, {{"KIND", "moe"}}), "run|--a|1|--experts|8|--z\n");
  const std::string file = "if [ -f x ]; then A=1; else A=2; fi\nrun $A";
  EXPECT_EQ(run(file), "run|$if:1\n");
  EXPECT_EQ(run(file, {{"if:1", "false"}}), "run|2\n");
}

TEST(Shell, CountsWhatIsAskedForEmptinessAsNotSet) {
  const ShellScript script =
      evaluated("if [ ! -z \"$V\" ]; then O=--v; fi\n[ \"$W\" != \"\" ] && O=--w\nrun $O");
  EXPECT_EQ(script.assumed, (std::vector<std::string>{"V", "W"}));
  EXPECT_EQ(run("if [ -z \"$1\" ]; then echo usage; exit 1; fi\nrun $1"), "run|$1\n");
  EXPECT_EQ(run("[ $# -ne 2 ] && exit 1\nif [ $A = x ]; then exit; fi\nrun $2", {{"2", "b"}}),
            "run|b\n");
}

TEST(Shell, FollowsFunctionsLoopsAndSourcedFiles) {
  EXPECT_EQ(run("f() {\n local X=$1\n shift\n run $X \"$@\"\n}\nf a b 'c d'\n"), "run|a|b|c d\n");
  EXPECT_EQ(run("for t in 1 2; do\n run $t\ndone\nwhile [[ $# -gt 0 ]]; do case $1 in --gpus) "
                "G=$2; shift 2;; esac; done\nfor i in $(seq $N); do B=1; done"),
            "run|1\nrun|2\n");
  EXPECT_EQ(run("source conf/model.sh\nrun $L", {}, {{"conf/model.sh", "L=12"}}), "run|12\n");
  const ShellScript without = evaluated("source model.sh\nrun $L");
  EXPECT_EQ(without.not_sourced, std::vector<std::string>{"model.sh (line 1)"});
  EXPECT_EQ(run("C=\"run --a 1 --b '2 3'\"\neval $C\nbash -c \"run --x $((1+1)); run y\""),
            "run|--a|1|--b|2 3\nbash|run|--x|2\nbash|run|y\n");
}

TEST(Shell, RunsNothingAndComesToAnEnd) {
  EXPECT_EQ(run("A=$(touch /tmp/pipesim_shell_test; echo hi)\nrun $A"), "run|hi\n");
  EXPECT_THROW(evaluated("while true; do while true; do while true; do A=1; done; done; done"),
               InputError);
  EXPECT_THROW(evaluated("f() { f; }\nf"), InputError);
  EXPECT_THROW(evaluated("if true; then"), InputError);
  EXPECT_THROW(evaluated("A='x"), InputError);
  EXPECT_EQ(run("A=$(python3 -c \"import s; s.f(('', 0))\")\nrun $A"), "run|$A\n");
}

TEST(Shell, ReadsSizesOfAJob) {
  const ShellScript script = evaluated(
      "#!/bin/bash\n#SBATCH -N 16\n#SBATCH --gres=gpu:h100:8\nrun $SLURM_NNODES "
      "$SLURM_GPUS_ON_NODE");
  EXPECT_EQ(script.slurm.at("nodes").text, "16");
  EXPECT_EQ(script.slurm.at("gres").text, "8");
  EXPECT_EQ(script.commands[0].words[1].text, "16");
  EXPECT_EQ(script.commands[0].words[2].text, "8");
}

}  // namespace
}  // namespace pipesim::shell_test
