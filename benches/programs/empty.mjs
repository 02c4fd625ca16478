process.stdout.write("1");
